"""Keeping: the model of a run's best split, with all that its graph is known by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unalike.datasets import Source
from unalike.datasets.dataset import Dataset
from unalike.experiments.result import Result
from unalike.experiments.view import unseen
from unalike.graph import Graph
from unalike.methods.method import Method
from unalike.models.file import check_new
from unalike.models.learning import check_keeps, model_of
from unalike.models.model import Model
from unalike.store import Stored
from unalike.task import Solution


def check_wish(path: Path, method: Method) -> bool:
    """Refuse before training what could not be saved after it."""
    check_new(path)
    check_keeps(method)
    return True


def best_of(results: Sequence[Result]) -> int:
    """The place of the result with the best validation grade."""
    return max(range(len(results)), key=lambda place: results[place].valid)


def kept_model(
    method: Method, dataset: Source, graph: Graph, solution: Solution
) -> Model:
    """The model behind a solution, with the names that the dataset gives."""
    source = unseen(dataset)
    scaled = isinstance(source, Dataset) and source.preparation.row_normalised
    return model_of(
        method,
        graph,
        solution,
        stored=source if isinstance(source, Stored) else None,
        name=dataset.name,
        row_normalised=scaled,
    )
