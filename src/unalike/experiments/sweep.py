"""Run a sweep with one or several worker processes, show progress, estimate time and memory."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Any

import torch

from unalike.device import device_name, device_of_worker
from unalike.errors import UserError
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.leases import LEASE_SECONDS, count_active
from unalike.experiments.plan import RunGroup, SweepPlan
from unalike.experiments.run import RunOptions
from unalike.experiments.worker import Worker, describe, network_on_meta
from unalike.progress import NO_PROGRESS, Progress
from unalike.system import num_cores
from unalike.training.stack import memory_per_run

GRACE_SECONDS = 5.0
"""For workers that are asked to stop."""
WATCH_SECONDS = 1.0
"""Between two looks at the workers, or at the database."""
POLL_FACTOR = 20
"""Times as long as a look at the database took: then comes the next."""


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Who works, and where."""

    jobs: int = 1
    device: str = "cpu"
    lease_seconds: float = LEASE_SECONDS


@dataclass
class SweepProgress:
    """Tells whoever watches what the database says of an agenda."""

    agenda: SweepPlan
    results: ResultsDatabase
    progress: Progress
    on_message: Callable[[str], None] = lambda what: None
    told: int = field(default=0, init=False)
    errors: set[str] = field(default_factory=set, init=False)
    """Why runs failed, as far as that has been told."""
    note: str = field(default="", init=False)
    now: str = field(default="", init=False)
    next_look: float = field(default=0.0, init=False)

    def begin(self) -> None:
        """Say how much there is to do."""
        failed = self.results.failed(self.agenda.keys)
        if failed:
            self.on_message(failed_before(len(failed)))
        self.errors.update(failed.values())
        self.told = len(self.results.finished_or_failed(self.agenda.keys))
        left = len(self.agenda.keys) - self.told
        self.progress.stage("sweep", left, "runs")

    def refresh(self, now: str = "") -> None:
        """Say what is done now; look again, unless that was done a moment ago."""
        if time.monotonic() > self.next_look:
            self.poll(now)
        else:
            self.now = now
            self.show()

    def poll(self, now: str = "") -> None:
        """Say what is done, running and failed, and the best grade of what runs."""
        began = time.monotonic()
        self.now = now
        failed = self.results.failed(self.agenda.keys)
        for error in set(failed.values()) - self.errors:
            self.on_message(f"A run failed: {error.splitlines()[-1]}")
        self.errors.update(failed.values())
        settled = len(self.results.done(self.agenda.keys)) + len(failed)
        self.note = f"{count_active(self.results.engine)} running, {len(failed)} failed"
        if best := self.results.best_message():
            self.note += f", best {best}"
        new, self.told = settled - self.told, settled
        self.show(new=new)
        ended = time.monotonic()
        self.next_look = ended + max(WATCH_SECONDS, POLL_FACTOR * (ended - began))

    def show(self, how_far: str = "", new: int = 0) -> None:
        """Say again what was seen last, and how far what is done now is."""
        at_work = ", ".join(word for word in (self.now, how_far) if word)
        self.progress.advance(new, "; now ".join(filter(None, (self.note, at_work))))


@dataclass
class NestedProgress:
    """A listener that tells of the stack at work in the words of a watch."""

    watch: SweepProgress
    done: float = field(default=0.0, init=False)
    whole: str = field(default="", init=False)

    def stage(self, what: str, total: int | float | None, unit: str) -> None:
        self.done = 0.0
        self.whole = f"{unit} {what}" if total is None else f"of {total:,.0f} {unit}"

    def advance(self, amount: int | float, note: str = "") -> None:
        self.done += amount
        self.watch.show(f"{self.done:,.0f} {self.whole}")


def sweep(
    agenda: SweepPlan,
    url: str,
    *,
    crew: WorkerOptions | None = None,
    retry: bool = False,
    progress: Progress = NO_PROGRESS,
    remark: Callable[[str], None] = lambda what: None,
) -> dict[str, int]:
    """Run what is left of an agenda; how many runs are done and have failed."""
    crew = crew or WorkerOptions()
    with ResultsDatabase.open(url, remark) as results:
        if retry:
            results.delete_failures(agenda.keys)
        watch = SweepProgress(agenda, results, progress, remark)
        watch.begin()
        if crew.jobs == 1:
            place = RunOptions(device=crew.device, progress=NestedProgress(watch))
            Worker(agenda, results, place, watch.refresh, crew.lease_seconds).work()
        else:
            _run_processes(agenda, url, crew, watch)
        watch.poll()
        return count_runs(agenda, results)


def failed_before(runs: int) -> str:
    """What somebody should know who has not asked for another try."""
    return f"{runs} runs failed before; --retry tries them again."


def count_runs(agenda: SweepPlan, results: ResultsDatabase) -> dict[str, int]:
    """How far an agenda is."""
    done, failed = results.done(agenda.keys), results.failed(agenda.keys)
    return {"runs": len(agenda.keys), "done": len(done), "failed": len(failed)}


def _run_processes(
    agenda: SweepPlan, url: str, crew: WorkerOptions, watch: SweepProgress
) -> None:
    """Let several processes work, and watch them."""
    # One process imports everything and has no threads yet: the others are its forks.
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    workers = [
        context.Process(target=_worker_main, args=(agenda, url, crew, job), daemon=True)
        for job in range(crew.jobs)
    ]
    for worker in workers:
        worker.start()
    try:
        while any(worker.is_alive() for worker in workers):
            _first_alive(workers).join(WATCH_SECONDS)
            watch.refresh()
    except BaseException:
        stop_workers(workers)
        raise
    if all(worker.exitcode for worker in workers):
        raise UserError(f"All {crew.jobs} workers died; run with --jobs 1 to see why.")


def stop_workers(workers: Sequence[BaseProcess]) -> None:
    """Ask workers to stop; end those that do not, which costs no more."""
    for worker in workers:
        if worker.pid and worker.is_alive():
            os.kill(worker.pid, signal.SIGINT)
    until = time.monotonic() + GRACE_SECONDS
    for worker in workers:
        worker.join(max(0.0, until - time.monotonic()))
        worker.kill()
        worker.join()


def _first_alive(workers: Sequence[BaseProcess]) -> BaseProcess:
    return next((worker for worker in workers if worker.is_alive()), workers[0])


def _worker_main(agenda: SweepPlan, url: str, crew: WorkerOptions, job: int) -> None:
    """The work of one process among several."""
    torch.set_num_threads(max(1, num_cores() // crew.jobs))
    try:
        with ResultsDatabase.open(url) as results:
            place = RunOptions(device=device_of_worker(crew.device, job, crew.jobs))
            Worker(agenda, results, place, lease_seconds=crew.lease_seconds).work()
    except KeyboardInterrupt:
        raise SystemExit(1) from None


def estimate(
    agenda: SweepPlan, results: ResultsDatabase, device: str, *, retry: bool = False
) -> list[dict[str, Any]]:
    """What is known of each bundle beforehand: its size, its memory, its time."""
    known = results.seconds(device_name(device))
    settled = (results.done if retry else results.finished_or_failed)(agenda.keys)
    return [
        {
            "bundle": describe(bundle),
            "shape": bundle.first.describe(shared=True),
            "settings": len({run.setting for run in bundle.runs}),
            "runs": len(bundle.runs),
            "left": (left := sum(run.key not in settled for run in bundle.runs)),
            "memory_mb": _memory_mb(bundle, agenda),
            "seconds": left * known[bundle.shape] if bundle.shape in known else None,
        }
        for bundle in agenda.bundles
    ]


def _memory_mb(bundle: RunGroup, agenda: SweepPlan) -> float | None:
    """The memory of all its runs at once, which may be done in parts."""
    try:
        sketch = network_on_meta(bundle, agenda.data)
    except UserError:
        return None
    return (
        len(bundle.runs)
        * memory_per_run(sketch[1], sketch[2], row_wise=sketch[0].row_wise)
        / 2**20
        if sketch
        else None
    )
