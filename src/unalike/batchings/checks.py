"""Checks: settings of a batching that must be at least 1."""

from typing import Any

from unalike.errors import UserError


def at_least_one(settings: Any, *names: str) -> None:
    """Refuse settings below 1 by their names."""
    for name in names:
        if (value := getattr(settings, name)) < 1:
            raise UserError(f"{name} is {value}; it must be at least 1.")
