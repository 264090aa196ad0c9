"""Mark: the short names of settings and of shelves of runs."""

from unalike.experiments.fingerprint import digest
from unalike.experiments.results import Row

LENGTH = 16
"""Hexadecimal digits; two of a million agree by chance of 10^-8."""


def shelf_mark(dataset: str, method: str) -> str:
    """What the runs of a method on a dataset are filed under."""
    return digest({"dataset": dataset, "method": method})[:LENGTH]


def setting_mark(row: Row) -> str:
    """What the runs of a setting with one seed on one version of a dataset share."""
    told = {name: row[name] for name in ("setting", "dataset_hash", "seed")}
    return digest(told)[:LENGTH]
