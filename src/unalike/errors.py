"""`UserError`, look-up with "did you mean", validation of positive options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

Entry = TypeVar("Entry")

MAX_SEED = 2**32 - 1
"""Largest seed of NumPy's legacy generator."""

MAX_COUNT = 2**31 - 1
"""Largest number of nodes, and so of what an option may count."""


class UserError(Exception):
    """A mistake that the user can correct, explained in one line."""


class InputError(UserError, ValueError):
    """A `UserError` where scikit-learn and similar libraries expect a `ValueError`."""


def lookup(table: Mapping[str, Entry], name: str, kind: str) -> Entry:
    """The entry of a table, or a `UserError` that suggests the nearest name."""
    if name in table:
        return table[name]
    hint = did_you_mean(name, table)
    raise UserError(f"No {kind} '{name}'.{hint} Known: {', '.join(table)}.")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question with the nearest of the known names; empty if none is near."""
    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


def first_line(error: object) -> str:
    """The first line of an error message, shortened, or the type of the error."""
    message = str(error).strip() or type(error).__name__
    return message.splitlines()[0][:200].rstrip(".")


def check_at_least_one(flag: str, value: int) -> None:
    """Refuse the value of a flag below 1."""
    if value < 1:
        raise UserError(f"{flag} is {value}; at least 1 is needed.")


def require_positive(options: Any, *names: str) -> None:
    """Refuse options below 1 or above 2^31 - 1."""
    for name in names:
        if (value := getattr(options, name)) < 1:
            raise UserError(f"{name} is {value}; it must be at least 1.")
        if value > MAX_COUNT:
            raise UserError(f"{name} is {value}; it must be at most {MAX_COUNT}.")


def check_seed(seed: int) -> None:
    """Refuse a seed that NumPy or torch does not take."""
    if not 0 <= seed <= MAX_SEED:
        raise UserError(f"The seed is {seed}; it must be from 0 to {MAX_SEED}.")


def require(package: str, extra: str, reason: str) -> ModuleType:
    """Import an optional package, or raise a `UserError` that names its extra."""
    try:
        return import_module(package)
    except ImportError:
        raise UserError(f"{reason}: pip install 'unalike[{extra}]'.") from None
