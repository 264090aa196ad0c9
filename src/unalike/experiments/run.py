"""Train a method on the splits of a dataset, evaluate it, save the best model."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from unalike.data.graph import Graph
from unalike.data.regression import (
    NumberScale,
    check_has_classes,
    metric_of_task,
    numbers_of,
    predicts_numbers,
)
from unalike.data.split import Split
from unalike.data.store import StoredGraph
from unalike.data.task import Solution, Task
from unalike.datasets import GraphSource
from unalike.datasets.base import Dataset
from unalike.datasets.registry import GraphInMemory, as_source
from unalike.device import (
    cpu_capability,
    device_name,
    peak_memory_mb,
    reset_peak_memory,
    versions,
)
from unalike.errors import UserError, check_seed
from unalike.experiments.base_model_cache import BaseModelCache
from unalike.experiments.config import (
    DatasetWithOptions,
    base_dataset,
    class_names,
    dataset_hash,
    has_default_patience,
    load_graph_and_splits,
    no_features_error,
    no_splits_error,
    options_of_dataset,
    with_default_patience,
)
from unalike.experiments.evaluation import (
    PredictionSummary,
    SplitCalibration,
    check_metric_defined,
    check_split_number,
    evaluate,
    training_history,
)
from unalike.experiments.inductive import solve_inductively
from unalike.experiments.label_inputs import add_label_inputs
from unalike.experiments.result import Result, Runs
from unalike.inference.model import Model, check_trainable, model_from_solution
from unalike.inference.model_file import check_can_create
from unalike.methods import (
    METHODS,
    as_method,
    check_predicts_numbers,
    check_uses_class_weights,
    check_uses_edge_weights,
    name_of,
)
from unalike.methods.base import Method, TrainedMethod, as_computed_on, solve_mixed
from unalike.options import options_of
from unalike.progress import NO_PROGRESS, Progress
from unalike.samplers import SAMPLERS
from unalike.samplers.base import FullBatch
from unalike.samplers.rows import RowSampler
from unalike.training.checkpoint import Checkpoint, without_threads
from unalike.training.distributed import World, main_process_first

AnyGraph: TypeAlias = GraphSource | Graph | str | Path
"""A dataset or stored graph, a graph in memory, a name or a folder."""

UNDIVIDED_BATCHINGS = (FullBatch, RowSampler)
"""Batchings without batches to distribute among processes."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Device, progress listener, checkpoint folder and model file of runs."""

    device: str = "cpu"
    progress: Progress = NO_PROGRESS
    checkpoint: Path | None = None
    model: str | Path | None = None
    """File for the model of the split with the best validation score."""
    calibrate: bool = False
    """Save the model with the temperature that is fitted on its valid nodes."""
    refit: bool = True
    """Train the saved model again on all labelled nodes, for as many epochs as
    validation chose; otherwise save the model of the split itself."""


def run(
    dataset: AnyGraph,
    method: Method | type[Method] | str,
    *,
    splits: Sequence[int] | None = None,
    seed: int = 0,
    options: RunOptions | None = None,
    place: RunOptions | None = None,
) -> Runs:
    """Train and evaluate a method on some or all splits of a graph, in one stack.

    The graph is a `Graph`, a stored graph or its folder, or the name of a dataset. A
    `Graph` has five random splits. A method is an instance, or a class or name with
    its default options.
    """
    options = options or deprecated_place(place)
    source = as_source(dataset)
    if isinstance(source, GraphInMemory):
        for remark in source.remarks():
            warnings.warn(f"{source.name}: {remark}.", stacklevel=2)
    output = train_splits(source, method, splits=splits, seed=seed, options=options)
    return output.results


def deprecated_place(place: RunOptions | None) -> RunOptions | None:
    """The options under their former keyword, with a warning."""
    if place is not None:
        warnings.warn("'place' is now 'options'.", DeprecationWarning, stacklevel=3)
    return place


def train_splits(
    dataset: AnyGraph,
    method: Method | type[Method] | str,
    *,
    splits: Sequence[int] | None = None,
    seed: int = 0,
    options: RunOptions | None = None,
) -> ExperimentOutput:
    """Train, evaluate and optionally save a method, and return also its predictions."""
    options = options or RunOptions()
    method = as_computed_on(options.device, as_method(method))
    dataset = with_default_patience(as_source(dataset), method)
    if options.calibrate:
        check_has_classes(dataset.load(), "Calibration")
    if options.model is not None:
        check_can_create(Path(options.model))
        check_trainable(method)
        check_no_label_inputs(dataset)
    world = World.current()
    check_can_distribute(method, world)
    with main_process_first(world):
        experiment = Experiment.load(dataset, splits, seed, options.progress)
    if world.size > 1:
        identity = experiment.identity(method, options.device)
        world.assert_equal_on_all_ranks({**identity, "processor": cpu_capability()})
    checkpoint = None
    if options.checkpoint is not None:
        key = experiment.checkpoint_key(method, options.device)
        checkpoint = Checkpoint(options.checkpoint, key)
    if options_of_dataset(dataset).inductive:
        check_inductive_run(options, world)
    solutions, seconds = experiment.solve(
        [(method, split) for split in experiment.splits],
        options,
        checkpoint=checkpoint,
        keep=options.model is not None,
    )
    experiment.raise_if_failed(solutions)
    results = experiment.results(solutions, method, seconds, options.device)
    output = ExperimentOutput(experiment, method, solutions, results)
    if options.model is not None:
        model = output.saved_model(options)
        if world.is_main:
            model.save(options.model)
    return output


def run_stack(
    dataset: GraphSource,
    members: Sequence[tuple[Method, int]],
    *,
    seed: int = 0,
    options: RunOptions | None = None,
    bases: BaseModelCache | None = None,
    prepared: Graph | None = None,
) -> list[Result | UserError]:
    """Train methods of equal shape, each on its own split, in one stack.

    A run whose training diverges has an error instead of a result. Base models in the
    cache are not trained again, and a prepared graph is not prepared again.
    """
    options, bases = options or RunOptions(), bases or BaseModelCache()
    experiment = Experiment.load(dataset, sorted({split for _, split in members}), seed)
    solutions, seconds = experiment.solve(
        members, options, solve=bases.for_dataset(dataset).solve, prepared=prepared
    )
    return [
        UserError(solution.error)
        if solution.error
        else experiment.result(split, solution, method, seconds, options.device)
        for (method, split), solution in zip(members, solutions, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class ExperimentOutput:
    """The predictions of a method on the splits of a dataset, and their results."""

    experiment: Experiment
    method: Method
    solutions: list[Solution]
    results: Runs

    @cached_property
    def best_index(self) -> int:
        """The position of the result with the best validation score."""
        scores = [result.valid for result in self.results]
        return scores.index(max(scores))

    @cached_property
    def calibrations(self) -> list[SplitCalibration]:
        """The temperature and the test logits of every split."""
        splits, labels = self.experiment.splits.values(), self.experiment.graph.labels
        return [
            SplitCalibration.fit(solution, split, labels)
            for solution, split in zip(self.solutions, splits, strict=True)
        ]

    @property
    def root_mean_squared_errors(self) -> list[float]:
        """The error of the test numbers of each split, in the unit of the labels."""
        graph = self.experiment.graph
        splits, errors = self.experiment.splits.values(), []
        for solution, split in zip(self.solutions, splits, strict=True):
            numbers = NumberScale.of(graph, split.train).numbers(solution.scores)
            true = numbers_of(graph)[graph.labels[split.test]]
            errors.append(float(((numbers[split.test] - true) ** 2).mean().sqrt()))
        return errors

    @cached_property
    def refit_epochs(self) -> int | None:
        """The median best epoch of the splits; None for methods without epochs."""
        epochs = [result.best_epoch for result in self.results if result.best_epoch]
        trained = isinstance(self.method, TrainedMethod) and epochs
        return round(median(epochs)) if trained else None

    def saved_model(self, options: RunOptions) -> Model:
        """The model of the best split, or one that is trained again on all labels."""
        experiment, number = self.experiment, self.results[self.best_index].split
        solution, train = (
            self.solutions[self.best_index],
            experiment.splits[number].train,
        )
        if options.refit and self.refit_epochs is not None:
            assert isinstance(self.method, TrainedMethod)
            training = replace(self.method.training, epochs=self.refit_epochs)
            task = experiment.refit_task(number)
            (solution,) = replace(self.method, training=training).solve_all(
                [task], device=options.device, progress=options.progress
            )
            solution.raise_if_failed()
            train = task.train
        source = base_dataset(experiment.dataset)
        model = model_from_solution(
            self.method,
            experiment.graph,
            solution,
            stored=source if isinstance(source, StoredGraph) else None,
            name=source.name,
            row_normalised=(
                isinstance(source, Dataset) and source.preparation.row_normalised
            ),
        )
        if options.calibrate:
            temperature = self.calibrations[self.best_index].temperature
            model = replace(model, temperature=temperature)
        if predicts_numbers(experiment.graph):
            scale = NumberScale.of(experiment.graph, train)
            model = replace(model, number_scale=scale)
        return model


@dataclass(frozen=True, eq=False, kw_only=True)
class Experiment:
    """A prepared graph with the splits to train and to evaluate on."""

    dataset: GraphSource
    graph: Graph
    splits: dict[int, Split]
    seed: int

    @classmethod
    def load(
        cls,
        dataset: AnyGraph,
        splits: Sequence[int] | None,
        seed: int,
        progress: Progress = NO_PROGRESS,
    ) -> Experiment:
        """Load the graph of a dataset and some or all of its splits."""
        check_seed(seed)
        dataset = as_source(dataset)
        name, (graph, stored) = dataset.name, load_graph_and_splits(dataset, progress)
        if not stored:
            raise no_splits_error(dataset)
        selected = {}
        for number in range(len(stored)) if splits is None else splits:
            check_split_number(number, len(stored), name)
            where = f"split {number} of {name}"
            check_metric_defined(stored[number], graph, dataset.metric, where)
            selected[number] = stored[number]
        return cls(dataset=dataset, graph=graph, splits=selected, seed=seed)

    def tasks(self, method: Method, *, keep: bool = False) -> list[Task]:
        """One task per split with its own seed; `keep` asks for the weights."""
        options, metric = options_of_dataset(self.dataset), self.dataset.metric
        has_features = self.graph.num_features or options.label_inputs
        if method.needs_features and not has_features:
            raise no_features_error(method, self.dataset)
        check_uses_edge_weights(method, self.graph)
        check_predicts_numbers(method, self.graph)
        if options.label_inputs:
            check_has_classes(self.graph, "--label-inputs")
        if options.class_weights:
            check_has_classes(self.graph, "--class-weights")
            check_uses_class_weights(method)
        tasks = [
            Task.from_split(self.graph, split, metric, self.seed + number)
            for number, split in self.splits.items()
        ]
        if options.label_inputs:
            tasks = [add_label_inputs(task, method) for task in tasks]
        return [replace(options.apply_to_task(task), keep=keep) for task in tasks]

    def solve(
        self,
        members: Sequence[tuple[Method, int]],
        options: RunOptions,
        *,
        keep: bool = False,
        checkpoint: Checkpoint | None = None,
        solve: Callable[..., list[Solution]] | None = None,
        prepared: Graph | None = None,
    ) -> tuple[list[Solution], float]:
        """The solution of each method on its split, and the seconds that each took."""
        tasks = dict(
            zip(self.splits, self.tasks(members[0][0], keep=keep), strict=True)
        )
        pairs = [(method, tasks[split]) for method, split in members]
        dataset_options = options_of_dataset(self.dataset)
        reset_peak_memory(options.device)
        start = time.perf_counter()
        if dataset_options.inductive:
            splits = [self.splits[split] for _, split in members]
            solutions = solve_inductively(
                pairs, splits, device=options.device, progress=options.progress
            )
        else:
            solutions = solve_mixed(
                pairs,
                device=options.device,
                progress=options.progress,
                checkpoint=checkpoint,
                solve=solve,
                prepared=None if dataset_options.label_inputs else prepared,
            )
        return solutions, (time.perf_counter() - start) / len(members)

    def refit_task(self, number: int) -> Task:
        """A task with all labelled nodes in train, with the seed of a split.

        They are its valid nodes too, which choose nothing: the last epoch is used.
        """
        labelled = (self.graph.labels >= 0).nonzero()[:, 0]
        task = Task(
            self.graph,
            labelled,
            labelled,
            metric_of_task(self.dataset.metric, self.graph, labelled),
            self.seed + number,
            keep=True,
            use_last=True,
        )
        task = options_of_dataset(self.dataset).apply_to_task(task)
        return replace(task, patience=None)

    def metadata(self, method: Method, device: str) -> dict[str, Any]:
        """The fields that all results of a method have in common."""
        return {
            "dataset": self.dataset.name,
            "method": name_of(method),
            "options": options_of(method),
            "view": options_of_dataset(self.dataset).overrides,
            "metric": self.dataset.metric.name,
            "seed": self.seed,
            "device": device_name(device),
            "versions": versions(),
        }

    def identity(self, method: Method, device: str) -> dict[str, Any]:
        """What a checkpoint and other processes must have in common with these runs.

        The number of threads is not part of it: any number of processes may resume.
        """
        return {
            **self.metadata(method, device),
            "device": without_threads(device_name(device)),
            "splits": list(self.splits),
            "data": dataset_hash(base_dataset(self.dataset)),
        }

    def checkpoint_key(self, method: Method, device: str) -> str:
        """The identity as text, without the default patience of own graphs.

        Checkpoints of versions without this default are resumed too.
        """
        identity = self.identity(method, device)
        if has_default_patience(self.dataset, method):
            del identity["view"]["patience"]
        return json.dumps(identity, sort_keys=True)

    def raise_if_failed(self, solutions: Sequence[Solution]) -> None:
        """Raise a `UserError` if the training of a split has diverged."""
        for number, solution in zip(self.splits, solutions, strict=True):
            if solution.error:
                raise UserError(f"Split {number}: {solution.error}")

    def results(
        self,
        solutions: Sequence[Solution],
        method: Method,
        seconds: float,
        device: str,
    ) -> Runs:
        """Evaluate one solution per split; each took so many seconds."""
        return Runs(
            self.result(number, solution, method, seconds, device)
            for number, solution in zip(self.splits, solutions, strict=True)
        )

    def result(
        self,
        number: int,
        solution: Solution,
        method: Method,
        seconds: float,
        device: str,
    ) -> Result:
        """Evaluate a solution on the split of this number."""
        split = self.splits[number]
        return Result(
            **self.metadata(method, device),
            split=number,
            **evaluate(solution, self.graph, split, self.dataset.metric),
            **training_history(solution.curve, seconds),
            peak_memory_mb=peak_memory_mb(device),
            answers=None
            if predicts_numbers(self.graph)
            else PredictionSummary.from_scores(
                solution.scores[split.test],
                self.graph.labels[split.test],
                are_logits=not solution.is_probability,
                classes=class_names(self.dataset),
            ),
        )


def check_inductive_run(options: RunOptions, world: World) -> None:
    """Raise a `UserError` for what an inductive evaluation cannot do."""
    if world.size > 1 or options.checkpoint is not None:
        raise UserError("--inductive excludes --processes and --checkpoint.")
    if options.model is not None and not options.refit:
        raise UserError(
            "--inductive saves a model of the whole graph; leave out --no-refit."
        )


def check_no_label_inputs(dataset: AnyGraph) -> None:
    """Raise a `UserError` if a model to save would need labels as inputs."""
    if isinstance(dataset, DatasetWithOptions) and dataset.view.label_inputs:
        raise UserError(
            "A model with --label-inputs cannot be saved: it holds no labels for new "
            "nodes; leave out --save or --label-inputs."
        )


def check_can_distribute(method: Method, world: World) -> None:
    """Raise a `UserError` if a method cannot be distributed over processes."""
    if world.size == 1 or method.column_parallel or method.data_parallel:
        return
    methods = ", ".join(name for name, kind in METHODS.items() if kind.column_parallel)
    batchings = ", ".join(
        name for name, kind in SAMPLERS.items() if kind not in UNDIVIDED_BATCHINGS
    )
    raise UserError(
        f"{name_of(method)} cannot be divided among {world.size} processes: it needs "
        f"the whole graph in one; those that can are {methods}, and message passing "
        f"with batches: {batchings}."
    )
