"""Options: the hyperparameters of a method, flat and named as its flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any, get_args, get_type_hints


@dataclass(frozen=True)
class Choice:
    """The mark of a kind that a field may hold: what it is called."""

    name: str


def one_of(table: Mapping[str, type]) -> Any:
    """The type of a field that holds one of several kinds of settings.

    On the command line the kind is chosen by its name, and its own flags follow.
    """
    return reduce(
        or_,
        (
            Annotated[(kind, Choice(name), *_subcommand(name, kind))]
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


def choices(settings: type) -> dict[str, dict[str, type]]:
    """The fields of a dataclass that hold one of several kinds, and those kinds."""
    hints = get_type_hints(settings, include_extras=True)
    found = {field.name: _kinds(hints[field.name]) for field in fields(settings)}
    return {name: kinds for name, kinds in found.items() if kinds}


def _kinds(hint: Any) -> dict[str, type]:
    return {
        mark.name: kind.__origin__
        for kind in get_args(hint)
        for mark in getattr(kind, "__metadata__", ())
        if isinstance(mark, Choice)
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
