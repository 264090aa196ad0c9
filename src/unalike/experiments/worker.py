"""Worker loop: acquire a lease, train the runs as a stack, store results or errors."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import ceil
from pathlib import Path
from types import FrameType

import torch
from torch import nn

from unalike.data.graph import Graph
from unalike.datasets import find
from unalike.errors import UserError
from unalike.experiments.base_model_cache import BaseModelCache
from unalike.experiments.config import DatasetOptions, DatasetWithOptions
from unalike.experiments.database import ResultsDatabase, run_columns, to_row
from unalike.experiments.leases import LEASE_SECONDS, Leases
from unalike.experiments.plan import DatasetRef, PlannedRun, RunGroup, SweepPlan
from unalike.experiments.result import Result
from unalike.experiments.run import RunOptions, run_stack
from unalike.methods.base import TrainedMethod, as_computed_on
from unalike.training.stack import max_stacked_runs

POLL_SECONDS = 0.5
"""Between two checks whether other workers have finished or died."""


@contextmanager
def record_sigint(stop: threading.Event) -> Iterator[None]:
    """Set an event on SIGINT, besides the `KeyboardInterrupt`, while the block runs.

    Compiled code may swallow an exception, or turn it into another error.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handler(number: int, frame: FrameType | None) -> None:
        stop.set()
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def raise_if_interrupted(stop: threading.Event) -> None:
    """Raise a `KeyboardInterrupt` if SIGINT was recorded."""
    if stop.is_set():
        raise KeyboardInterrupt


@dataclass(frozen=True)
class Worker:
    """Leases runs of a plan, trains them in stacks and stores their results."""

    plan: SweepPlan
    results: ResultsDatabase
    options: RunOptions
    on_status: Callable[[str], None] = lambda status: None
    lease_seconds: float = LEASE_SECONDS
    bases: BaseModelCache = field(default_factory=BaseModelCache)
    stop: threading.Event = field(default_factory=threading.Event)

    @cached_property
    def leases(self) -> Leases:
        return Leases(self.results.engine, self.lease_seconds)

    def work(self) -> None:
        """Work until every run of the plan is done or failed, also by other workers."""
        with record_sigint(self.stop), self.leases.heartbeat():
            while groups := self.unfinished_groups():
                if not sum(self.process_group(group) for group in groups):
                    self.on_status("waiting for others")
                    time.sleep(POLL_SECONDS)

    def unfinished_groups(self) -> list[RunGroup]:
        """The groups with runs that are neither done nor failed."""
        finished = self.results.finished_or_failed(self.plan.keys)
        return [
            group
            for group in self.plan.groups
            if any(run.key not in finished for run in group.runs)
        ]

    def process_group(self, group: RunGroup) -> bool:
        """Train all chunks that no other worker has leased; False if there are none."""
        # Chunks depend on the prepared graph, so first check that a run is available.
        remaining = {run.key for run in self.remaining(group.runs)}
        if remaining <= self.leases.held_by_others():
            return False
        size, prepared = self.max_stack_size(group)
        chunks = equal_chunks(group.runs, size)
        return sum(self.process_chunk(group, runs, prepared) for runs in chunks) > 0

    def process_chunk(
        self, group: RunGroup, runs: Sequence[PlannedRun], prepared: Graph | None
    ) -> bool:
        """Train the remaining runs of a chunk; False if another worker leased some."""
        raise_if_interrupted(self.stop)
        keys = [run.key for run in runs]
        if not self.remaining(runs) or not self.leases.acquire(keys):
            return False
        try:
            # Another worker may have stored some and released them just before.
            if remaining := self.remaining(runs):
                self.on_status(describe(group))
                self.run_and_store(group, remaining, prepared)
        except BaseException:
            self.leases.release_quietly()
            raise
        self.leases.release()
        return bool(remaining)

    def remaining(self, runs: Sequence[PlannedRun]) -> list[PlannedRun]:
        """The runs that are neither done nor failed."""
        finished = self.results.finished_or_failed(run.key for run in runs)
        return [run for run in runs if run.key not in finished]

    def max_stack_size(self, group: RunGroup) -> tuple[int, Graph | None]:
        """How many runs fit in a stack, and the prepared graph.

        If the size of a run is unknown, the runs of one configuration, or one run if
        these share nothing, and None.
        """
        try:
            if on_meta := network_on_meta(group, self.plan.data):
                method, network, graph = on_meta
                device = torch.device(self.options.device)
                row_wise = method.row_wise
                size = max_stacked_runs(network, graph, device, row_wise=row_wise)
                return size, graph
        except Exception:
            # The error is stored when the runs themselves fail.
            pass
        if group.first.method.splits_are_independent:
            return 1, None
        return sum(run.config == group.first for run in group.runs), None

    def run_and_store(
        self,
        group: RunGroup,
        runs: Sequence[PlannedRun],
        prepared: Graph | None = None,
    ) -> None:
        """Train runs and store results and failures; after an error, each config alone.

        A run whose training diverges fails alone.
        """
        try:
            outcomes = run_stack(
                cached_dataset(group.dataset, group.first.view, self.plan.data),
                [(run.config.method, run.split) for run in runs],
                seed=self.plan.seed,
                options=self.options,
                bases=self.bases,
                prepared=prepared,
            )
        except Exception as error:
            raise_if_interrupted(self.stop)
            configs = list(dict.fromkeys(run.config for run in runs))
            if len(configs) == 1:
                rows = [run_columns(run, group) for run in runs]
                self.results.store_failures(rows, error_text(error))
                return
            for config in configs:
                same = [run for run in runs if run.config == config]
                self.run_and_store(group, same, prepared)
            return
        rows = []
        for outcome, run in zip(outcomes, runs, strict=True):
            if isinstance(outcome, Result):
                rows.append(to_row(outcome, run, group))
            else:
                failed = [run_columns(run, group)]
                self.results.store_failures(failed, error_text(outcome))
        self.results.store(rows)


def check_precision(runs: Iterable[PlannedRun], device: str) -> None:
    """Raise a `UserError` if a device cannot compute in the precision of a run.

    The result of the run would be stored as one of that precision.
    """
    for method in (run.config.method for run in runs):
        if as_computed_on(device, method) != method:
            raise UserError(
                "bf16 needs a GPU, and a CPU computes in float32; "
                "add --set precision=float32."
            )


def equal_chunks(
    runs: Sequence[PlannedRun], max_size: int
) -> Iterator[Sequence[PlannedRun]]:
    """Runs in chunks of about equal size."""
    size = ceil(len(runs) / ceil(len(runs) / max_size))
    for start in range(0, len(runs), size):
        yield runs[start : start + size]


@lru_cache(maxsize=1)
def cached_dataset(
    dataset: DatasetRef, options: DatasetOptions, data: Path | None
) -> DatasetWithOptions:
    """A dataset that stays in memory until another one is requested."""
    return DatasetWithOptions(find(dataset.lookup_name, data), options)


def network_on_meta(
    group: RunGroup, data: Path | None
) -> tuple[TrainedMethod, nn.Module, Graph] | None:
    """The method of a group, its module on the meta device, and its graph."""
    method = group.first.method
    if not isinstance(method, TrainedMethod):
        return None
    dataset = cached_dataset(group.dataset, group.first.view, data)
    graph = method.prepare(dataset.prepared())
    return method, method.network_on_meta(graph), graph


def describe(group: RunGroup) -> str:
    """The dataset and method of a group."""
    return f"{group.dataset.name} {group.first.to_dict['method']}"


def error_text(error: Exception) -> str:
    """The message of a `UserError`, or the traceback of any other error."""
    if isinstance(error, UserError):
        return str(error)
    return "".join(traceback.format_exception(error)).strip()
