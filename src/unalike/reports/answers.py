"""Answers: the figures of what a method said of the test nodes."""

from __future__ import annotations

from pathlib import Path

from unalike.errors import UserError
from unalike.experiments.assessment import assess, confused, pooled
from unalike.experiments.run import Sitting
from unalike.experiments.view import class_names
from unalike.methods import name_of
from unalike.reports.canvas import keep
from unalike.reports.confusion import Confused, draw_confusion
from unalike.reports.reliability import draw_reliability


def draw_answers(sitting: Sitting, folder: Path, *, calibrate: bool) -> list[Path]:
    """Which classes are confused, and how far certainty can be trusted; the files."""
    assessed = assess(sitting)
    reliable = {"as trained": pooled(assessed, calibrated=False)}
    if calibrate:
        reliable["calibrated"] = pooled(assessed, calibrated=True)
    dataset, matrix = sitting.exam.dataset, confused(assessed).numpy()
    title = f"{dataset.name}, {name_of(sitting.method)}"
    names = class_names(dataset) or [*map(str, range(len(matrix)))]
    drawn = {
        folder / "confusion.png": draw_confusion(Confused(title, matrix, names)),
        folder / "reliability.png": draw_reliability(reliable),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for file, figure in drawn.items():
        keep(figure, file)
    return list(drawn)


def check_folder(folder: Path) -> None:
    """Refuse a folder that is something else, before any work is done."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is not a folder for figures.")
