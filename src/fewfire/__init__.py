"""fewfire: two-layer networks in which little is active."""

__version__ = "0.1.0"
