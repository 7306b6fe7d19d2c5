"""Sessions of the coding agent pi: a header, then entries, which newer versions link into a tree by `parentId`."""

from storage.transfer.formats.pi.format import FORMAT, fits, reader

__all__ = ["FORMAT", "fits", "reader"]
