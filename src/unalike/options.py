"""Hyperparameter dataclasses to flat options and command-line subcommands, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import reduce
from operator import or_
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from unalike.errors import lookup

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class SubcommandChoice:
    """The mark of a kind that a field may hold: what it is called."""

    name: str


def one_of(table: Mapping[str, type]) -> Any:
    """The type of a field that holds one of several kinds of settings.

    On the command line the kind is chosen by its name, and its own flags follow.
    """
    return reduce(
        or_,
        (
            Annotated[(kind, SubcommandChoice(name), *_subcommand(name, kind))]
            for name, kind in table.items()
        ),
    )


def _subcommand(name: str, kind: type) -> list[Any]:
    """What tells the command line of a choice; nothing where there is none."""
    try:
        import tyro
    except ImportError:
        return []
    return [tyro.conf.subcommand(name, description=kind.__doc__)]


CHOICES: dict[type, dict[str, dict[str, type]]] = {}
"""What `choices` has found; a report asks some sixty thousand times."""


def choices(settings: type) -> dict[str, dict[str, type]]:
    """The fields of a dataclass that hold one of several kinds, and those kinds."""
    if settings not in CHOICES:
        hints = get_type_hints(settings, include_extras=True)
        found = {field.name: _kinds(hints[field.name]) for field in fields(settings)}
        CHOICES[settings] = {name: kinds for name, kinds in found.items() if kinds}
    return CHOICES[settings]


def _kinds(hint: Any) -> dict[str, type]:
    return {
        mark.name: kind.__origin__
        for kind in get_args(hint)
        for mark in getattr(kind, "__metadata__", ())
        if isinstance(mark, SubcommandChoice)
    }


def options_of(settings: Any) -> dict[str, Any]:
    """Every field of a dataclass and of those inside it, by its own name.

    A field that holds one of several kinds tells the name of the kind.
    """
    found: dict[str, Any] = {}
    chosen = choices(type(settings))
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name in chosen:
            names = {kind: name for name, kind in chosen[field.name].items()}
            found[field.name] = names.get(type(value), type(value).__name__)
        if is_dataclass(value):
            found.update(options_of(value))
        else:
            found[field.name] = value
    return found


def with_options(settings: Settings, options: Mapping[str, Any], of: str) -> Settings:
    """The same settings with other values for some options, also those inside."""
    changed = _replaced(settings, options)
    known = options_of(changed)
    for name in options:
        lookup(known, name, f"option of {of}")
    return changed


def _replaced(settings: Any, options: Mapping[str, Any]) -> Any:
    changes, chosen = {}, choices(type(settings))
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name in chosen and field.name in options:
            kind = lookup(chosen[field.name], options[field.name], field.name)
            value = value if type(value) is kind else kind()
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
