"""Short ids of configurations and of the runs of a method on a dataset."""

from unalike.experiments.fingerprint import digest
from unalike.experiments.results import Row

LENGTH = 16
"""Hexadecimal digits; two of a million ids are equal with probability 10^-8."""


def method_runs_id(dataset: str, method: str) -> str:
    """The id of the document with the runs of a method on a dataset."""
    return digest({"dataset": dataset, "method": method})[:LENGTH]


def config_id(row: Row) -> str:
    """The id of a configuration with one seed on one version of a dataset."""
    key = {name: row[name] for name in ("setting", "dataset_hash", "seed")}
    return digest(key)[:LENGTH]
