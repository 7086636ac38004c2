"""Counter-based randomness: Philox4x32-10 streams keyed by run and name."""

from fewfire._random._stream import Stream, as_stream, digest64

__all__ = ["Stream", "as_stream", "digest64"]
