"""`UserError`, look-up with "did you mean", validation of positive settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

# The one error a user meets, and the look-up that suggests the right name.


Entry = TypeVar("Entry")


class UserError(Exception):
    """A mistake the user can mend, told in one line."""


class InputError(UserError, ValueError):
    """The same where scikit-learn and its kind expect a `ValueError`."""


def lookup(table: Mapping[str, Entry], name: str, kind: str) -> Entry:
    """The entry of a table, or a `UserError` that names the nearest entries."""
    if name in table:
        return table[name]
    hint = did_you_mean(name, table)
    raise UserError(f"No {kind} '{name}'.{hint} Known: {', '.join(table)}.")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names the nearest of the known names; empty if none is near."""
    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


# Checks: settings of a batching that must be at least 1.


def require_positive(settings: Any, *names: str) -> None:
    """Refuse settings below 1 by their names."""
    for name in names:
        if (value := getattr(settings, name)) < 1:
            raise UserError(f"{name} is {value}; it must be at least 1.")


def require(package: str, extra: str, reason: str) -> ModuleType:
    """Import an optional package, or raise a `UserError` that names its extra."""
    try:
        return import_module(package)
    except ImportError:
        raise UserError(f"{reason}: pip install 'unalike[{extra}]'.") from None
