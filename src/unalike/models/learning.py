"""Learning: a task solved so that the answer can be used on other nodes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import pyarrow as pa
import torch

from unalike.errors import UserError
from unalike.graph import Graph
from unalike.importing.encoding import Encoder
from unalike.methods import METHODS, name_of
from unalike.methods.method import Method, Trained
from unalike.models.facts import Facts
from unalike.models.model import Model
from unalike.models.names import own_names
from unalike.progress import SILENT, Progress
from unalike.store import Stored
from unalike.task import Solution, Task


def check_keeps(method: Method) -> Trained:
    """Refuse a method that learns nothing which could be kept."""
    if isinstance(method, Trained):
        return method
    able = [name for name, kind in METHODS.items() if issubclass(kind, Trained)]
    raise UserError(
        f"{name_of(method)} leaves no model to save: its scores come from the labels "
        f"around each node. Those that do are {', '.join(able)}."
    )


def learn(
    method: Method,
    task: Task,
    *,
    device: torch.device | str = "cpu",
    progress: Progress = SILENT,
) -> tuple[Model, Solution]:
    """Solve a task and keep what was learned."""
    trained = check_keeps(method)
    (solution,) = trained.solve_all(
        [replace(task, keep=True)], device=device, progress=progress
    )
    return model_of(trained, task.graph, solution), solution


def model_of(
    method: Method,
    graph: Graph,
    solution: Solution,
    *,
    stored: Stored | None = None,
    name: str = "",
    row_normalised: bool = False,
) -> Model:
    """The model behind a solution that kept its weights."""
    assert solution.weights is not None
    about = {} if stored is None else stored.about
    classes: list[Hashable] = about.get("class_names") or [*range(graph.num_classes)]
    columns = about.get("feature_columns")
    names: pa.Array | None = None if stored is None else own_names(stored.names)
    return Model(
        method=check_keeps(method),
        weights=solution.weights,
        facts=Facts.of(graph, name, row_normalised=row_normalised),
        classes=classes,
        encoder=None if columns is None else Encoder.from_about(columns),
        names=names,
    )
