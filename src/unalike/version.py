"""The version of unalike, as released and as written into every stored file."""

__version__ = "0.1.0"
