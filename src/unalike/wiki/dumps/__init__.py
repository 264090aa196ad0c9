"""Dumps: the public database dumps of a wiki, read into a collection."""
