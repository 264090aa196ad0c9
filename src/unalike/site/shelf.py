"""Shelf: all runs of a method on a dataset, as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from unalike.errors import UserError
from unalike.experiments.record import result_of
from unalike.experiments.result import command
from unalike.experiments.results import Row
from unalike.experiments.select import Tried, tried
from unalike.experiments.setting import revived
from unalike.site.cell import Document, cost, rounded
from unalike.site.mark import setting_mark
from unalike.site.sensitivity import options_of, sensitivity, varied

SCORES = ("train", "valid", "test", "best_epoch", "seconds", "peak_memory_mb")


def shelf(rows: Sequence[Row]) -> Document:
    """The settings of a shelf, the best first, and their runs."""
    settings = sorted(tried(rows), key=lambda one: (-one.valid, one.setting))
    comparable = alike(settings)
    first = rows[0]
    return {
        "dataset": first["dataset"],
        "method": first["method"],
        **options(settings),
        "settings": columns(
            [{**summary(one), "alike": one in comparable} for one in settings]
        ),
        "runs": columns(
            [
                {"setting": place, **story(row)}
                for place, one in enumerate(settings)
                for row in one.runs
            ]
        ),
        "sensitivity": sensitivity(comparable),
    }


def options(settings: Sequence[Tried]) -> Document:
    """The options that all settings share, and the others as columns."""
    several = varied(settings)
    shared = options_of(settings[0]).items()
    return {
        "shared": {name: value for name, value in shared if name not in several},
        "options": {
            name: [options_of(one).get(name) for one in settings] for name in several
        },
    }


def alike(settings: Sequence[Tried]) -> list[Tried]:
    """The settings whose scores can be compared: the metric and splits of most."""

    def kind(one: Tried) -> tuple[str, int]:
        return one.runs[0]["metric"], len(one.runs)

    most = Counter(kind(one) for one in settings).most_common(1)[0][0]
    return [one for one in settings if kind(one) == most]


def summary(setting: Tried) -> Document:
    """What is told of a setting."""
    first = setting.runs[0]
    return {
        "mark": setting_mark(first),
        "metric": first["metric"],
        "count": len(setting.runs),
        "valid": rounded(setting.valid),
        "test": rounded(setting.test),
        "std": rounded(setting.std),
        **{name: rounded(value) for name, value in cost(setting).items()},
        "seed": first["seed"],
        "command": beginning(first),
    }


def beginning(row: Row) -> str | None:
    """The command that repeats a run, up to its splits; none where it cannot."""
    try:
        facts = revived(row).facts
    except UserError:
        return None
    whole = command(result_of({**row, **facts}), splits="0")
    return whole.rpartition(" --splits ")[0]


def story(row: Row) -> Document:
    """What is told of a run."""
    scores = {name: rounded(row[name]) for name in SCORES}
    where = {name: row[name] for name in ("split", "device", "commit")}
    return {**where, **scores, "finished": round(row["finished"])}


def columns(documents: Sequence[Document]) -> dict[str, Any]:
    """Documents of the same keys as lists; what all have in common is told once."""
    told: dict[str, Any] = {}
    for name in documents[0] if documents else ():
        values = [document[name] for document in documents]
        same = all(value == values[0] for value in values)
        told[name] = {"all": values[0]} if same else values
    return {"length": len(documents), **told}
