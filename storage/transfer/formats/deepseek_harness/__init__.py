"""Native session logs of DeepSeek Harness: a header line, then records whose seq is their position."""

from storage.transfer.formats.deepseek_harness.format import FORMAT, fits, reader

__all__ = ["FORMAT", "fits", "reader"]
