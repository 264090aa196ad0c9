"""Options: the hyperparameters of a method, flat and named as its flags."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any, get_args, get_type_hints

import tyro

from unalike.errors import lookup


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
            Annotated[
                kind, Choice(name), tyro.conf.subcommand(name, description=kind.__doc__)
            ]
            for name, kind in table.items()
        ),
    )


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


def words_of(usual: Any, options: Mapping[str, Any]) -> list[str]:
    """Options as the command line has them: flags, then what is chosen with its own.

    `usual` holds the defaults of the settings that the options are about.
    """
    flags, last = [], []
    chosen = choices(type(usual))
    for field in fields(usual):
        value = getattr(usual, field.name)
        if field.name in chosen:
            name = options[field.name]
            kind = lookup(chosen[field.name], name, field.name)
            last += [name, *words_of(value if type(value) is kind else kind(), options)]
        elif is_dataclass(value):
            flags += words_of(value, options)
        else:
            flags += flag(field.name, options[field.name], value)
    return flags + last


def flag(name: str, value: Any, usual: Any) -> list[str]:
    """An option as it is written on the command line; nothing for a usual switch."""
    told = name.replace("_", "-")
    if isinstance(value, bool):
        switch = f"--{told}" if value else f"--no-{told}"
        return [] if value == usual else [switch]
    parts = value if isinstance(value, list | tuple) else [value]
    return [f"--{told}", *(shlex.quote(str(part)) for part in parts)]
