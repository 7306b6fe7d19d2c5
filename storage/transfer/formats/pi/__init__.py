"""Sessions of the coding agent pi: a header, then entries, which later versions link to a tree by `parentId`."""

from storage.transfer.formats.pi.format import FORMAT, fits, reader

__all__ = ["FORMAT", "fits", "reader"]
