"""JSON documents of the page: ids, rounding, script form."""

from __future__ import annotations

import json
from typing import Any

from unalike.experiments.database import Row
from unalike.files import json_hash

Document = dict[str, Any]
"""A JSON object."""
DIGITS = 4
"""Digits after the point of rounded numbers."""
LENGTH = 16
"""Hexadecimal digits of an id; two of a million are equal with probability 10^-8."""


def method_runs_id(dataset: str, method: str) -> str:
    """The id of the document with the runs of a method on a dataset."""
    return json_hash({"dataset": dataset, "method": method}, LENGTH)


def config_id(row: Row) -> str:
    """The id of a configuration with one seed on one version of a dataset."""
    key = {name: row[name] for name in ("setting", "dataset_hash", "seed")}
    return json_hash(key, LENGTH)


def as_script(name: str, document: Document) -> str:
    """A call that passes the document to the page.

    A page that was opened from a disk can load scripts but no other files. The script
    holds no `<`, so that it could stand inside a page as well.
    """
    payload = json.dumps([name, document], separators=(",", ":"))
    return f"receive(...{payload});\n".replace("<", "\\u003c")
