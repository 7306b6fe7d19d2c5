"""Event streams of OpenHands: actions and observations, in the `history` of a run's record or as records themselves."""

from storage.transfer.formats.openhands.format import FORMAT, fits, reader

__all__ = ["FORMAT", "fits", "reader"]
