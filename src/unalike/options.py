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
    """Annotation of a type that a field may have: the name of its subcommand."""

    name: str


def one_of(table: Mapping[str, type]) -> Any:
    """The type of a field that holds one of several option classes.

    On the command line a class is chosen by its name, and its own flags follow.
    """
    return reduce(
        or_,
        (
            Annotated[(kind, SubcommandChoice(name), *_subcommand(name, kind))]
            for name, kind in table.items()
        ),
    )


def _subcommand(name: str, kind: type) -> list[Any]:
    """The annotation for tyro; none without tyro."""
    try:
        import tyro
    except ImportError:
        return []
    return [tyro.conf.subcommand(name, description=kind.__doc__)]


CHOICES: dict[type, dict[str, dict[str, type]]] = {}
"""Cache of `choices`, which a report calls some sixty thousand times."""


def choices(settings: type) -> dict[str, dict[str, type]]:
    """The fields of a dataclass that hold one of several classes, and those classes."""
    if settings not in CHOICES:
        hints = get_type_hints(settings, include_extras=True)
        classes = {
            field.name: _classes(hints[field.name]) for field in fields(settings)
        }
        CHOICES[settings] = {name: table for name, table in classes.items() if table}
    return CHOICES[settings]


def _classes(hint: Any) -> dict[str, type]:
    return {
        annotation.name: kind.__origin__
        for kind in get_args(hint)
        for annotation in getattr(kind, "__metadata__", ())
        if isinstance(annotation, SubcommandChoice)
    }


def options_of(settings: Any) -> dict[str, Any]:
    """Every field of a dataclass and of those nested in it, in one flat dictionary.

    A field that holds one of several classes has the name of the class.
    """
    options: dict[str, Any] = {}
    chosen = choices(type(settings))
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name in chosen:
            names = {kind: name for name, kind in chosen[field.name].items()}
            options[field.name] = names.get(type(value), type(value).__name__)
        if is_dataclass(value):
            options.update(options_of(value))
        else:
            options[field.name] = value
    return options


def with_options(settings: Settings, options: Mapping[str, Any], of: str) -> Settings:
    """The same settings with other values for some options, nested ones too."""
    changed = _replace(settings, options)
    known = options_of(changed)
    for name in options:
        lookup(known, name, f"option of {of}")
    return changed


def _replace(settings: Any, options: Mapping[str, Any]) -> Any:
    changes, chosen = {}, choices(type(settings))
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name in chosen and field.name in options:
            kind = lookup(chosen[field.name], options[field.name], field.name)
            value = value if type(value) is kind else kind()
        if is_dataclass(value):
            changes[field.name] = _replace(value, options)
        elif field.name in options:
            changes[field.name] = _convert(value, options[field.name])
    return replace(settings, **changes)


def _convert(default: Any, value: Any) -> Any:
    """A value with the type of the field; files have lists for tuples and 1 for 1.0."""
    if isinstance(value, list):
        return tuple(value)
    return float(value) if isinstance(default, float) else value
