"""Hyperparameter dataclasses to flat options and command-line subcommands, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import reduce
from operator import or_
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from unalike.errors import UserError, lookup

Settings = TypeVar("Settings")

RANGES: dict[str, tuple[float, float]] = {
    "alpha": (0, 1),
    "correct_alpha": (0, 1),
    "dropout": (0, 1),
    "edge_layers": (0, 1_000),
    "feature_layers": (0, 1_000),
    "flow_hops": (1, 1_000),
    "flow_steps": (1, 1_000_000),
    "folds": (3, 1_000),
    "global_dropout": (0, 1),
    "global_layers": (1, 1_000),
    "heads": (1, 1_024),
    "hidden": (1, 65_536),
    "hops": (0, 1_000),
    "inner_dropout": (0, 1),
    "input_dropout": (0, 1),
    "layers": (1, 1_000),
    "propagation_dropout": (0, 1),
    "repeats": (1, 1_000_000),
    "scalar_decay": (0, math.inf),
    "scalar_lr": (1e-3, 1_000),
    "sharpening": (0, math.inf),
    "smooth_alpha": (0, 1),
    "stacks": (1, 100_000),
    "weight_decay": (0, math.inf),
}
"""Smallest and largest value of the hyperparameters with this name."""


def check_options(settings: Any) -> None:
    """Refuse unknown words, values out of range and numbers that are not finite."""
    for name, words in words_of(type(settings)).items():
        lookup(words, str(getattr(settings, name)), name)
    for own in fields(settings):
        value = getattr(settings, own.name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, int | float) and not isinstance(one, bool):
                _check_range(own.name, one)


def _check_range(name: str, value: int | float) -> None:
    low, high = RANGES.get(name, (-math.inf, math.inf))
    flag = f"--{name.replace('_', '-')}"
    if not math.isfinite(value):
        raise UserError(f"{flag} is {value}; a finite number is needed.")
    if value < low:
        raise UserError(f"{flag} is {value}; it must be at least {low}.")
    if value > high:
        raise UserError(f"{flag} is {value}; it must be at most {high}.")


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


TYPES: dict[type, dict[str, Any]] = {}
CHOICES: dict[type, dict[str, dict[str, type]]] = {}
WORDS: dict[type, dict[str, dict[str, None]]] = {}
"""Caches of functions that a report calls some sixty thousand times."""


def type_hints(settings: type) -> dict[str, Any]:
    """The types of the fields of a dataclass, with their annotations."""
    if settings not in TYPES:
        TYPES[settings] = get_type_hints(settings, include_extras=True)
    return TYPES[settings]


def choices(settings: type) -> dict[str, dict[str, type]]:
    """The fields of a dataclass that hold one of several classes, and those classes."""
    if settings not in CHOICES:
        hints = type_hints(settings)
        classes = {own.name: _classes(hints[own.name]) for own in fields(settings)}
        CHOICES[settings] = {name: table for name, table in classes.items() if table}
    return CHOICES[settings]


def words_of(settings: type) -> dict[str, dict[str, None]]:
    """The fields of a dataclass that hold one of several words, and those words."""
    if settings not in WORDS:
        hints = type_hints(settings)
        WORDS[settings] = {
            own.name: dict.fromkeys(map(str, get_args(hints[own.name])))
            for own in fields(settings)
            if get_origin(hints[own.name]) is Literal
        }
    return WORDS[settings]


def _classes(hint: Any) -> dict[str, type]:
    return {
        annotation.name: kind.__origin__
        for kind in get_args(hint)
        for annotation in getattr(kind, "__metadata__", ())
        if isinstance(annotation, SubcommandChoice)
    }


OMIT_DEFAULT = "omit_default"


def later_option(default: Any) -> Any:
    """A field that `options_of` omits while it has its default.

    An option that is added to a class in this way does not change the options, and so
    the keys, of runs that were stored without it.
    """
    return field(default=default, metadata={OMIT_DEFAULT: True})


def options_of(settings: Any, *, omit: bool = True) -> dict[str, Any]:
    """Every field of a dataclass and of those nested in it, in one flat dictionary.

    A field that holds one of several classes has the name of the class. A field of
    `later_option` with its default is left out unless `omit` is False.
    """
    options: dict[str, Any] = {}
    chosen = choices(type(settings))
    for own in fields(settings):
        value = getattr(settings, own.name)
        if own.name in chosen:
            names = {kind: name for name, kind in chosen[own.name].items()}
            options[own.name] = names.get(type(value), type(value).__name__)
        if is_dataclass(value):
            options.update(options_of(value, omit=omit))
        elif not (omit and OMIT_DEFAULT in own.metadata and value == own.default):
            options[own.name] = value
    return options


def with_options(settings: Settings, options: Mapping[str, Any], of: str) -> Settings:
    """The same settings with other values for some options, nested ones too."""
    changed = _replace(settings, options)
    known = options_of(changed, omit=False)
    for name in options:
        lookup(known, name, f"option of {of}")
    return changed


def _replace(settings: Any, options: Mapping[str, Any]) -> Any:
    changes, chosen = {}, choices(type(settings))
    hints = type_hints(type(settings))
    for own in fields(settings):
        value = getattr(settings, own.name)
        if own.name in chosen and own.name in options:
            kind = lookup(chosen[own.name], options[own.name], own.name)
            value = value if type(value) is kind else kind()
        if is_dataclass(value):
            changes[own.name] = _replace(value, options)
        elif own.name in options:
            changes[own.name] = _convert(own.name, hints[own.name], options[own.name])
    return replace(settings, **changes)


def _convert(name: str, hint: Any, value: Any) -> Any:
    """A value with the type of its field; files have lists for tuples and 1 for 1.0."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Literal:
        return lookup({str(one): one for one in parts}, str(value), name)
    if isinstance(value, list | tuple):
        part = parts[0] if kind is tuple and parts[1:] == (...,) else Any
        return tuple(_convert(name, part, one) for one in value)
    if hint not in CONVERTERS:
        return value
    convert, needed = CONVERTERS[hint]
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"{name} is {value!r}; {needed} is needed.") from None


def _to_bool(value: Any) -> bool:
    if value not in (True, False):
        raise ValueError
    return bool(value)


def _to_int(value: Any) -> int:
    if isinstance(value, bool) or not (isinstance(value, str) or int(value) == value):
        raise ValueError
    return int(value)


def _to_float(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


CONVERTERS: dict[Any, tuple[Callable[[Any], Any], str]] = {
    bool: (_to_bool, "true or false"),
    int: (_to_int, "a whole number"),
    float: (_to_float, "a number"),
}
"""Conversions of values to types, and what an error asks for."""
