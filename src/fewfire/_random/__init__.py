"""Counter-based randomness: Philox4x32-10 streams keyed by run and name."""

from fewfire._random._stream import Stream as Stream
from fewfire._random._stream import as_stream as as_stream
from fewfire._random._stream import digest64 as digest64
