"""Record: a result as the database keeps it."""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from unalike.experiments.agenda import Bundle, Run, Subject, run_key
from unalike.experiments.answers import Answers
from unalike.experiments.machine import commit
from unalike.experiments.result import Result
from unalike.experiments.setting import Setting, revived

CURVES = ("losses", "grades")


def record(result: Result, run: Run, bundle: Bundle) -> dict[str, Any]:
    """A row of the table of runs."""
    told = result.to_json()
    curve = pack([told.pop(name) for name in CURVES])
    return {
        **told,
        **identity(run, bundle),
        "shape": bundle.shape,
        "dataset_hash": bundle.subject.hash,
        "batching": run.setting.batching,
        "commit": commit(),
        "finished": time.time(),
        "curve": curve,
    }


def records(
    subject: Subject, setting: Setting, results: Sequence[Result]
) -> list[dict[str, Any]]:
    """Rows for what a setting came to on some splits of a dataset."""
    named = (setting.facts, subject.name, subject.hash)
    runs = tuple(
        Run(setting, one.split, run_key(*named, one.split, one.seed)) for one in results
    )
    bundle = Bundle(subject, setting.shape, runs)
    pairs = zip(results, runs, strict=True)
    return [record(result, run, bundle) for result, run in pairs]


def identity(run: Run, bundle: Bundle) -> dict[str, Any]:
    """What every table tells of a run."""
    return {
        "key": run.key,
        "setting": run.setting.key,
        "dataset": bundle.subject.name,
        "method": run.setting.facts["method"],
        "split": run.split,
    }


def result_of(row: Mapping[str, Any]) -> Result:
    """The result that a row keeps."""
    curves = dict(zip(CURVES, unpack(row.get("curve")), strict=True))
    answers = row.get("answers")
    told = {**row, **curves, "answers": answers and Answers.revived(answers)}
    return Result(**{field.name: told[field.name] for field in fields(Result)})


def renewed(row: dict[str, Any]) -> dict[str, Any]:
    """A row made by another version, under the keys that it has in this one."""
    setting = revived(row)
    where = (row["dataset"], row["dataset_hash"], row["split"], row["seed"])
    keys = {
        "key": run_key(setting.facts, *where),
        "setting": setting.key,
        "shape": setting.shape,
    }
    return {**row, **setting.facts, "batching": setting.batching, **keys}


def pack(curves: list[list[float]]) -> bytes | None:
    """Curves of equal length as compressed 32-bit numbers."""
    if not curves[0]:
        return None
    return zlib.compress(np.array(curves, "<f4").T.tobytes(), 9)


def unpack(packed: bytes | None) -> list[list[float]]:
    """The curves that were packed; empty ones where there are none."""
    if packed is None:
        return [[] for _ in CURVES]
    numbers = np.frombuffer(zlib.decompress(packed), "<f4").reshape(-1, len(CURVES))
    return numpy_lists(numbers)


def numpy_lists(numbers: np.ndarray) -> list[list[float]]:
    """The columns of an array as lists."""
    return [column.tolist() for column in numbers.T]
