"""Fetching: the raw files of datasets brought to their places, whole and checked."""

from unalike.datasets.fetching.fetch import Fetched, clear_archives, fetch_file

__all__ = ["Fetched", "clear_archives", "fetch_file"]
