"""Options: the hyperparameters of a method, flat and named as its flags."""

from dataclasses import fields, is_dataclass
from typing import Any


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
