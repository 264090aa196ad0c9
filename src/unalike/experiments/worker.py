"""Worker: takes runs nobody else has, trains them together, keeps what came out."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import ceil
from pathlib import Path

import torch
from torch import nn

from unalike.datasets import find
from unalike.errors import UserError
from unalike.experiments.agenda import Agenda, Bundle, Run
from unalike.experiments.bases import Bases
from unalike.experiments.interrupt import heed, noting
from unalike.experiments.leases import SECONDS, Leases
from unalike.experiments.machine import start_afresh
from unalike.experiments.record import identity, record
from unalike.experiments.results import Results
from unalike.experiments.run import Place, run_together
from unalike.experiments.view import Seen, View
from unalike.graph import Graph
from unalike.methods.method import Trained
from unalike.training.room import runs_at_once

POLL_SECONDS = 0.5
"""Between two looks whether others have finished, or have died."""


@dataclass(frozen=True)
class Worker:
    """One of those who work on an agenda."""

    agenda: Agenda
    results: Results
    place: Place
    tell: Callable[[str], None] = lambda what: None
    lease_seconds: float = SECONDS
    bases: Bases = field(default_factory=Bases)
    stop: threading.Event = field(default_factory=threading.Event)

    @cached_property
    def leases(self) -> Leases:
        return Leases(self.results.engine, self.lease_seconds)

    def work(self) -> None:
        """Go on until every run of the agenda is settled, by whomever."""
        with noting(self.stop), self.leases.kept():
            while left := self.unsettled():
                if not sum(self.attend(bundle) for bundle in left):
                    self.tell("waiting for others")
                    time.sleep(POLL_SECONDS)

    def unsettled(self) -> list[Bundle]:
        """The bundles of which something is left to do."""
        settled = self.results.settled(self.agenda.keys)
        return [
            bundle
            for bundle in self.agenda.bundles
            if any(run.key not in settled for run in bundle.runs)
        ]

    def attend(self, bundle: Bundle) -> bool:
        """Run the parts of a bundle that nobody else is at; was there one?"""
        # Who looks for parts must prepare the graph: not before something is free.
        if {run.key for run in self.left(bundle.runs)} <= self.leases.of_others():
            return False
        return sum(self.take(bundle, runs) for runs in self.parts(bundle)) > 0

    def take(self, bundle: Bundle, runs: Sequence[Run]) -> bool:
        """Run what is left of a part, unless somebody else is at some of it."""
        heed(self.stop)
        if not self.left(runs) or not self.leases.take([run.key for run in runs]):
            return False
        try:
            # Somebody may have stored some of it, and let go, a moment ago.
            if left := self.left(runs):
                self.tell(describe(bundle))
                self.attempt(bundle, left)
        except BaseException:
            self.leases.let_go()
            raise
        self.leases.give_back()
        return bool(left)

    def left(self, runs: Sequence[Run]) -> list[Run]:
        """Those of some runs that are neither done nor failed."""
        settled = self.results.settled(run.key for run in runs)
        return [run for run in runs if run.key not in settled]

    def parts(self, bundle: Bundle) -> Iterator[Sequence[Run]]:
        """The runs of a bundle in equal parts, none larger than the device takes."""
        count = len(bundle.runs)
        size = ceil(count / ceil(count / self.room(bundle)))
        for begin in range(0, count, size):
            yield bundle.runs[begin : begin + size]

    def room(self, bundle: Bundle) -> int:
        """How many runs of a bundle to train at once; one setting if it is unknown."""
        start_afresh(self.place.device)
        try:
            if sketch := sketched(bundle, self.agenda.data):
                method, network, graph = sketch
                device = torch.device(self.place.device)
                row_wise = method.row_wise
                return runs_at_once(network, graph, device, row_wise=row_wise)
        except Exception:
            # What is wrong is told when the runs themselves fail.
            pass
        return sum(run.setting == bundle.first for run in bundle.runs)

    def attempt(self, bundle: Bundle, runs: Sequence[Run]) -> None:
        """Run, and keep the results or the error; one bad setting spoils no other."""
        members = [(run.setting.method, run.split) for run in runs]
        try:
            source = self.source(bundle)
            seed = self.agenda.seed
            found = run_together(
                source, members, seed=seed, place=self.place, bases=self.bases
            )
        except Exception as error:
            heed(self.stop)
            settings = list(dict.fromkeys(run.setting for run in runs))
            if len(settings) == 1:
                rows = [identity(run, bundle) for run in runs]
                self.results.note_failures(rows, reason(error))
                return
            for setting in settings:
                self.attempt(bundle, [run for run in runs if run.setting == setting])
            return
        pairs = zip(found, runs, strict=True)
        self.results.store([record(result, run, bundle) for result, run in pairs])

    def source(self, bundle: Bundle) -> Seen:
        """The dataset of a bundle; the last one stays prepared."""
        return prepared(bundle.subject.told, bundle.view, self.agenda.data)


@lru_cache(maxsize=1)
def prepared(name: str, view: View, data: Path | None) -> Seen:
    """A dataset, kept in memory until another one is asked for."""
    return Seen(find(name, data), view)


def sketched(
    bundle: Bundle, data: Path | None
) -> tuple[Trained, nn.Module, Graph] | None:
    """The method of a bundle, its module on the meta device, and its graph."""
    method = bundle.first.method
    if not isinstance(method, Trained):
        return None
    graph = prepared(bundle.subject.told, bundle.view, data).prepared()
    graph = method.prepare(graph)
    with torch.device("meta"):
        return method, method.network(graph), graph


def describe(bundle: Bundle) -> str:
    """A bundle in a few words."""
    return f"{bundle.subject.name} {bundle.first.facts['method']}"


def reason(error: Exception) -> str:
    """Why something failed: what a user is told, or where the program stood."""
    if isinstance(error, UserError):
        return str(error)
    return "".join(traceback.format_exception(error)).strip()
