"""The commands of `sapwood`, one file each."""
