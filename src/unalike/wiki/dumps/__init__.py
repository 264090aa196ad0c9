"""Dumps: the public database dumps of a wiki, read into a collection."""

from unalike.wiki.dumps.build import collect

__all__ = ["collect"]
