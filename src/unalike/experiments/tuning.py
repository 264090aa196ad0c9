"""`tune`: search the hyperparameters of any method on any graph, from Python."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from unalike.data.store import StoredGraph, save_graph
from unalike.datasets.base import Dataset
from unalike.datasets.registry import GraphInMemory, as_source
from unalike.datasets.twins.twin import Twin
from unalike.errors import UserError
from unalike.experiments.config import (
    base_dataset,
    no_splits_error,
    options_of_dataset,
)
from unalike.experiments.correct_and_smooth_search import (
    StudyResult,
    search_correct_and_smooth,
)
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.method_search import Budget, SearchResult, search_method
from unalike.experiments.run import AnyGraph, RunOptions, deprecated_place
from unalike.experiments.sweep import WorkerOptions
from unalike.methods import as_method
from unalike.methods.base import Method, TrainedMethod
from unalike.methods.correct_and_smooth import CorrectAndSmooth

SEARCH_TRIALS, STUDY_TRIALS = 50, 500
"""Trials of a search, and of each study of Correct & Smooth, by default."""


def tune(
    dataset: AnyGraph,
    method: Method | type[Method] | str | None = None,
    *,
    trials: int | None = None,
    minutes: float | None = None,
    splits: Sequence[int] | None = None,
    seed: int = 0,
    options: RunOptions | None = None,
    results: str | ResultsDatabase | None = None,
    base: TrainedMethod | None = None,
    place: RunOptions | None = None,
) -> SearchResult | list[StudyResult]:
    """Search the hyperparameters of a method by validation score, with Optuna.

    Options that have other values than their defaults stay as they are; the others are
    searched on all splits. `result.best` is the best method, for `run` and
    `NodeClassifier`. With `results`, the URL of a database, trials are stored and the
    same call goes on from them. `trials` is 50 by default, stored ones included, and no
    trial begins after `minutes`.

    `CorrectAndSmooth(base=...)`, or no method, is searched as in the paper instead: a
    base model is trained once on each of the `splits`, and there are four studies
    around its scores, of 500 trials each by default. The result is a list of studies.
    """
    options = options or deprecated_place(place) or RunOptions()
    if base is not None:
        text = "'base' is now the method CorrectAndSmooth(base=...)."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        method = CorrectAndSmooth(base=base)
    method = CorrectAndSmooth() if method is None else as_method(method)
    smoothed = isinstance(method, CorrectAndSmooth)
    check_tune_options(options, splits, minutes, smoothed=smoothed)
    with ExitStack() as stack:
        if isinstance(results, str):
            results = stack.enter_context(ResultsDatabase.open(results))
        if isinstance(method, CorrectAndSmooth):
            return search_correct_and_smooth(
                dataset,
                method.base,
                trials=STUDY_TRIALS if trials is None else trials,
                splits=splits,
                seed=seed,
                options=options,
                results=results,
            )
        source = as_source(dataset)
        if results is None:
            file = Path(stack.enter_context(TemporaryDirectory()), "results.db")
            results = stack.enter_context(ResultsDatabase.open(f"sqlite:///{file}"))
        name, data = stack.enter_context(findable(base_dataset(source)))
        return search_method(
            name,
            method,
            results,
            view=options_of_dataset(source),
            budget=Budget(
                trials=SEARCH_TRIALS if trials is None else trials, minutes=minutes
            ),
            seed=seed,
            workers=WorkerOptions(device=options.device),
            data=data,
            progress=options.progress,
            shown=dataset if isinstance(dataset, str) else None,
        )


def check_tune_options(
    options: RunOptions,
    splits: Sequence[int] | None,
    minutes: float | None,
    *,
    smoothed: bool,
) -> None:
    """Raise a `UserError` for what this kind of search does not have."""
    if options.model is not None or options.calibrate:
        raise UserError(
            "tune saves no model; give its best method to run with "
            "RunOptions(model=...)."
        )
    if smoothed and minutes is not None:
        raise UserError("minutes are not for correct-and-smooth; give trials.")
    if not smoothed and (splits is not None or options.checkpoint is not None):
        raise UserError(
            "splits and a checkpoint are for correct-and-smooth; a search uses all "
            "splits and goes on from its results."
        )


@contextmanager
def findable(source: object) -> Iterator[tuple[str, Path | None]]:
    """The name or path and the data root by which the workers find a source.

    A graph in memory is stored in a temporary folder.
    """
    if isinstance(source, StoredGraph):
        yield str(source.folder.absolute()), None
    elif isinstance(source, Dataset | Twin):
        yield source.name, source.data
    elif isinstance(source, GraphInMemory):
        with TemporaryDirectory() as folder:
            path = Path(folder, source.name)
            splits = source.splits()
            if not splits:
                raise no_splits_error(source)
            save_graph(path, source.graph, splits=splits, metric=source.metric)
            yield str(path), None
    else:
        raise UserError(f"{source} cannot be searched; save it as a stored graph.")
