"""JSON documents of the page: ids, rounding, script form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from unalike.experiments.database import Row
from unalike.files import json_hash

Document = dict[str, Any]
"""A JSON object."""
DIGITS = 4
"""Digits after the point of rounded numbers."""
LENGTH = 16
"""Hexadecimal digits of an id; two of a million are equal with probability 10^-8."""


GraphKey = tuple[str, str]
"""The name and the hash of a dataset."""

HASH_DIGITS = 6


def method_runs_id(row: Row) -> str:
    """The id of the document with the runs of a method on one version of a dataset."""
    key = {name: row[name] for name in ("dataset", "dataset_hash", "method")}
    return json_hash(key, LENGTH)


def graph_labels(
    keys: Collection[GraphKey], paths: Mapping[GraphKey, str]
) -> dict[GraphKey, str]:
    """The label of each graph: its name, with path or hash where names are equal."""
    counts = Counter(name for name, _ in set(keys))
    return {
        (name, hash): name
        if counts[name] == 1
        else f"{name} ({paths.get((name, hash)) or f'data {hash[:HASH_DIGITS]}'})"
        for name, hash in keys
    }


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
