"""Worker loop: acquire a lease, train the runs as a stack, store results or errors."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
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
from unalike.device import reset_peak_memory
from unalike.errors import UserError
from unalike.experiments.config import DatasetOptions, DatasetWithOptions
from unalike.experiments.database import ResultsDatabase, run_columns, to_row
from unalike.experiments.leases import LEASE_SECONDS, Leases
from unalike.experiments.plan import PlannedRun, RunGroup, SweepPlan
from unalike.experiments.run import BaseModelCache, RunOptions, run_stack
from unalike.methods.base import TrainedMethod
from unalike.training.stack import max_stacked_runs

# Interrupt: a wish to stop that is not lost, wherever it arrives.


@contextmanager
def record_sigint(stop: threading.Event) -> Iterator[None]:
    """Note every interruption while the block runs, besides raising it.

    Compiled code may swallow what is raised inside it, or turn it into another error.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        stop.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def raise_if_interrupted(stop: threading.Event) -> None:
    """Stop now, if that was wished."""
    if stop.is_set():
        raise KeyboardInterrupt


# Worker: takes runs nobody else has, trains them together, keeps what came out.


POLL_SECONDS = 0.5
"""Between two looks whether others have finished, or have died."""


@dataclass(frozen=True)
class Worker:
    """One of those who work on an agenda."""

    agenda: SweepPlan
    results: ResultsDatabase
    place: RunOptions
    on_status: Callable[[str], None] = lambda what: None
    lease_seconds: float = LEASE_SECONDS
    bases: BaseModelCache = field(default_factory=BaseModelCache)
    stop: threading.Event = field(default_factory=threading.Event)

    @cached_property
    def leases(self) -> Leases:
        return Leases(self.results.engine, self.lease_seconds)

    def work(self) -> None:
        """Go on until every run of the agenda is settled, by whomever."""
        with record_sigint(self.stop), self.leases.heartbeat():
            while left := self.unfinished_groups():
                if not sum(self.process_group(bundle) for bundle in left):
                    self.on_status("waiting for others")
                    time.sleep(POLL_SECONDS)

    def unfinished_groups(self) -> list[RunGroup]:
        """The bundles of which something is left to do."""
        settled = self.results.finished_or_failed(self.agenda.keys)
        return [
            bundle
            for bundle in self.agenda.bundles
            if any(run.key not in settled for run in bundle.runs)
        ]

    def process_group(self, bundle: RunGroup) -> bool:
        """Run the parts of a bundle that nobody else is at; was there one?"""
        # Who looks for parts must prepare the graph: not before something is free.
        if {
            run.key for run in self.remaining(bundle.runs)
        } <= self.leases.held_by_others():
            return False
        return sum(self.process_chunk(bundle, runs) for runs in self.chunks(bundle)) > 0

    def process_chunk(self, bundle: RunGroup, runs: Sequence[PlannedRun]) -> bool:
        """Run what is left of a part, unless somebody else is at some of it."""
        raise_if_interrupted(self.stop)
        if not self.remaining(runs) or not self.leases.acquire(
            [run.key for run in runs]
        ):
            return False
        try:
            # Somebody may have stored some of it, and let go, a moment ago.
            if left := self.remaining(runs):
                self.on_status(describe(bundle))
                self.run_and_store(bundle, left)
        except BaseException:
            self.leases.release_quietly()
            raise
        self.leases.release()
        return bool(left)

    def remaining(self, runs: Sequence[PlannedRun]) -> list[PlannedRun]:
        """Those of some runs that are neither done nor failed."""
        settled = self.results.finished_or_failed(run.key for run in runs)
        return [run for run in runs if run.key not in settled]

    def chunks(self, bundle: RunGroup) -> Iterator[Sequence[PlannedRun]]:
        """The runs of a bundle in equal parts, none larger than the device takes."""
        count = len(bundle.runs)
        size = ceil(count / ceil(count / self.max_stack_size(bundle)))
        for begin in range(0, count, size):
            yield bundle.runs[begin : begin + size]

    def max_stack_size(self, bundle: RunGroup) -> int:
        """How many runs of a bundle to train at once; one setting if it is unknown."""
        reset_peak_memory(self.place.device)
        try:
            if sketch := network_on_meta(bundle, self.agenda.data):
                method, network, graph = sketch
                device = torch.device(self.place.device)
                row_wise = method.row_wise
                return max_stacked_runs(network, graph, device, row_wise=row_wise)
        except Exception:
            # What is wrong is told when the runs themselves fail.
            pass
        return sum(run.setting == bundle.first for run in bundle.runs)

    def run_and_store(self, bundle: RunGroup, runs: Sequence[PlannedRun]) -> None:
        """Run, and keep the results or the error; one bad setting spoils no other."""
        members = [(run.setting.method, run.split) for run in runs]
        try:
            source = self.source(bundle)
            seed = self.agenda.seed
            found = run_stack(
                source, members, seed=seed, place=self.place, bases=self.bases
            )
        except Exception as error:
            raise_if_interrupted(self.stop)
            settings = list(dict.fromkeys(run.setting for run in runs))
            if len(settings) == 1:
                rows = [run_columns(run, bundle) for run in runs]
                self.results.store_failures(rows, error_text(error))
                return
            for setting in settings:
                self.run_and_store(
                    bundle, [run for run in runs if run.setting == setting]
                )
            return
        pairs = zip(found, runs, strict=True)
        self.results.store([to_row(result, run, bundle) for result, run in pairs])

    def source(self, bundle: RunGroup) -> DatasetWithOptions:
        """The dataset of a bundle; the last one stays prepared."""
        return cached_dataset(bundle.subject.lookup_name, bundle.view, self.agenda.data)


@lru_cache(maxsize=1)
def cached_dataset(
    name: str, view: DatasetOptions, data: Path | None
) -> DatasetWithOptions:
    """A dataset, kept in memory until another one is asked for."""
    return DatasetWithOptions(find(name, data), view)


def network_on_meta(
    bundle: RunGroup, data: Path | None
) -> tuple[TrainedMethod, nn.Module, Graph] | None:
    """The method of a bundle, its module on the meta device, and its graph."""
    method = bundle.first.method
    if not isinstance(method, TrainedMethod):
        return None
    graph = cached_dataset(bundle.subject.lookup_name, bundle.view, data).prepared()
    graph = method.prepare(graph)
    with torch.device("meta"):
        return method, method.network(graph), graph


def describe(bundle: RunGroup) -> str:
    """A bundle in a few words."""
    return f"{bundle.subject.name} {bundle.first.to_dict['method']}"


def error_text(error: Exception) -> str:
    """Why something failed: what a user is told, or where the program stood."""
    if isinstance(error, UserError):
        return str(error)
    return "".join(traceback.format_exception(error)).strip()
