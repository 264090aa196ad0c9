"""Options: the hyperparameters of a method, flat and named as its flags."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from unalike.errors import lookup

Settings = TypeVar("Settings")


def options_of(settings: Any) -> dict[str, Any]:
    """Every field of a dataclass and of those inside it, by its own name."""
    found: dict[str, Any] = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            found.update(options_of(value))
        else:
            found[field.name] = value
    return found


def with_options(settings: Settings, options: Mapping[str, Any], of: str) -> Settings:
    """The same settings with other values for some options, also those inside."""
    known = options_of(settings)
    for name in options:
        lookup(known, name, f"option of {of}")
    return _replaced(settings, options)


def _replaced(settings: Any, options: Mapping[str, Any]) -> Any:
    changes = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            changes[field.name] = _replaced(value, options)
        elif field.name in options:
            changes[field.name] = _like(value, options[field.name])
    return replace(settings, **changes)


def _like(usual: Any, value: Any) -> Any:
    """A value as the field wants it; files know neither tuples nor 1 for 1.0."""
    if isinstance(value, list):
        return tuple(value)
    return float(value) if isinstance(usual, float) else value
