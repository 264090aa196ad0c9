"""Fingerprint: the hash of a dataset as methods are given it."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from unalike.datasets import Source
from unalike.datasets.raw import Raw
from unalike.datasets.twins.model import Twin
from unalike.errors import UserError
from unalike.store import Stored

LENGTH = 32
"""Hexadecimal digits of a digest; two of 10^12 agree by chance of 10^-15."""
STEPS = ("preparation", "symmetrised")
"""What sources call the steps from the stored arrays to the graph of methods."""


def fingerprint(source: Source) -> str:
    """A digest of the stored arrays, splits included, and of their preparation."""
    arrays = stored_form(source).about["arrays"]
    steps = {
        name: repr(getattr(source, name)) for name in STEPS if hasattr(source, name)
    }
    hashes = {name: facts["sha256"] for name, facts in arrays.items()}
    return digest({"arrays": hashes, "steps": steps})


def stored_form(source: Source) -> Stored:
    """The folder behind a source."""
    if isinstance(source, Stored):
        return source
    if isinstance(source, Raw | Twin):
        return source.stored()
    raise UserError(f"{source.name} is not a stored graph; save it first.")


def digest(facts: dict[str, Any]) -> str:
    """The hash of facts that JSON can tell."""
    told = json.dumps(facts, sort_keys=True)
    return sha256(told.encode()).hexdigest()[:LENGTH]
