"""Run a sweep with worker processes, show progress, estimate time and memory."""

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
from unalike.errors import UserError, check_at_least_one
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.database_connection import retry_while_unreachable
from unalike.experiments.leases import LEASE_SECONDS, count_active
from unalike.experiments.plan import RunGroup, SweepPlan
from unalike.experiments.run import RunOptions
from unalike.experiments.selection import best_with_most_splits
from unalike.experiments.worker import (
    Worker,
    check_precision,
    describe,
    network_on_meta,
)
from unalike.parallel import use_threads
from unalike.progress import NO_PROGRESS, Progress
from unalike.system import num_cores
from unalike.training.stack import memory_per_run

MIN_LEASE_SECONDS = 1.0
"""Workers renew a lease three times in its duration."""
MAX_THREADS = 1024
"""Far more than a process can use; torch starts any number."""
GRACE_SECONDS = 5.0
"""How long workers may take to stop."""
WATCH_SECONDS = 1.0
"""Between two polls of the workers or of the database."""
POLL_FACTOR = 20
"""The pause between polls is at least so many times as long as a poll."""


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Number of worker processes, their device, threads and duration of leases."""

    jobs: int = 1
    device: str = "cpu"
    lease_seconds: float = LEASE_SECONDS
    threads: int = 1
    """CPU threads of each worker that trains on the CPU.

    The order of sums depends on it, so that it does not depend on the machine or on
    the number of workers.
    """

    def __post_init__(self) -> None:
        check_at_least_one("--jobs", self.jobs)
        if not 1 <= self.threads <= MAX_THREADS:
            raise UserError(
                f"--threads is {self.threads}; it must be from 1 to {MAX_THREADS}."
            )
        if not self.lease_seconds >= MIN_LEASE_SECONDS:
            raise UserError(
                f"--lease is {self.lease_seconds:g}; "
                f"at least {MIN_LEASE_SECONDS:g} second is needed."
            )

    @property
    def num_threads(self) -> int:
        """The CPU threads of each worker; with a GPU, its part of the cores."""
        if torch.device(self.device).type == "cpu":
            return self.threads
        if self.jobs == 1:
            return torch.get_num_threads()
        return max(1, num_cores() // self.jobs)


def sweep(
    plan: SweepPlan,
    url: str,
    *,
    workers: WorkerOptions | None = None,
    retry: bool = False,
    progress: Progress = NO_PROGRESS,
    on_message: Callable[[str], None] = lambda message: None,
) -> dict[str, int]:
    """Run all unfinished runs of a plan; return how many are done and failed."""
    workers = workers or WorkerOptions()
    with ResultsDatabase.open(url, on_message) as results:
        if retry:
            results.delete_failures(plan.keys)
        finished = results.finished_or_failed(plan.keys)
        runs = (run for group in plan.groups for run in group.runs)
        check_precision((r for r in runs if r.key not in finished), workers.device)
        sweep_progress = SweepProgress(plan, results, progress, on_message)
        sweep_progress.begin()
        if workers.jobs == 1:
            options = RunOptions(
                device=workers.device, progress=NestedProgress(sweep_progress)
            )
            refresh, seconds = sweep_progress.refresh, workers.lease_seconds
            with use_threads(workers.num_threads):
                Worker(plan, results, options, refresh, seconds).work()
        else:
            _run_processes(plan, url, workers, sweep_progress)
        sweep_progress.poll()
        done, failed = results.done(plan.keys), results.failed(plan.keys)
        return {"runs": len(plan.keys), "done": len(done), "failed": len(failed)}


# Progress


@dataclass
class SweepProgress:
    """Reports how many runs of a plan are done, running and failed."""

    plan: SweepPlan
    results: ResultsDatabase
    progress: Progress
    on_message: Callable[[str], None] = lambda message: None
    num_finished: int = field(default=0, init=False)
    errors: set[str] = field(default_factory=set, init=False)
    """The errors that were reported."""
    note: str = field(default="", init=False)
    status: str = field(default="", init=False)
    next_poll: float = field(default=0.0, init=False)

    def begin(self) -> None:
        """Report the number of unfinished runs."""
        failed = self.results.failed(self.plan.keys)
        if failed:
            self.on_message(failed_before(len(failed)))
        self.errors.update(failed.values())
        self.num_finished = len(self.results.finished_or_failed(self.plan.keys))
        self.progress.stage("sweep", len(self.plan.keys) - self.num_finished, "runs")

    def refresh(self, status: str = "") -> None:
        """Report the status; poll the database unless the last poll is recent."""
        if time.monotonic() > self.next_poll:
            self.poll(status)
        else:
            self.status = status
            self.show()

    def poll(self, status: str = "") -> None:
        """Report runs that are done, running and failed, and the best score."""
        start = time.monotonic()
        self.status = status
        failed = self.results.failed(self.plan.keys)
        for error in set(failed.values()) - self.errors:
            self.on_message(f"A run failed: {error.splitlines()[-1]}")
        self.errors.update(failed.values())
        finished = len(self.results.done(self.plan.keys)) + len(failed)
        self.note = f"{count_active(self.results.engine)} running, {len(failed)} failed"
        if best := best_message(self.results):
            self.note += f", best {best}"
        new, self.num_finished = finished - self.num_finished, finished
        self.show(new=new)
        end = time.monotonic()
        self.next_poll = end + max(WATCH_SECONDS, POLL_FACTOR * (end - start))

    def show(self, detail: str = "", new: int = 0) -> None:
        """Report the last poll again, with the status of the current stack."""
        current = ", ".join(filter(None, (self.status, detail)))
        self.progress.advance(new, "; now ".join(filter(None, (self.note, current))))


@dataclass
class NestedProgress:
    """Reports the progress of the current stack as a detail of the sweep's progress."""

    parent: SweepProgress
    done: float = field(default=0.0, init=False)
    suffix: str = field(default="", init=False)

    def stage(self, what: str, total: int | float | None, unit: str) -> None:
        self.done = 0.0
        self.suffix = f"{unit} {what}" if total is None else f"of {total:,.0f} {unit}"

    def advance(self, amount: int | float, note: str = "") -> None:
        self.done += amount
        self.parent.show(f"{self.done:,.0f} {self.suffix}")


def failed_before(runs: int) -> str:
    """The message about failed runs of earlier sweeps."""
    return f"{runs} runs failed before; --retry tries them again."


@retry_while_unreachable
def best_message(results: ResultsDatabase) -> str:
    """The best validation score of the dataset and method that finished last."""
    latest = results.latest()
    if latest is None:
        return ""
    names = ("dataset", "dataset_hash", "method", "metric", "seed")
    filters = {name: latest[name] for name in names}
    best = best_with_most_splits(results.runs(**filters)).chosen
    assert best is not None
    return f"{latest['dataset']} {latest['method']} {best.valid:.2f}"


# Worker processes


def _run_processes(
    plan: SweepPlan, url: str, workers: WorkerOptions, progress: SweepProgress
) -> None:
    """Start worker processes and wait for them."""
    # The fork server imports everything before it has threads; workers are its forks.
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    processes = [
        context.Process(
            target=_worker_main, args=(plan, url, workers, job), daemon=True
        )
        for job in range(workers.jobs)
    ]
    for process in processes:
        process.start()
    try:
        while alive := [process for process in processes if process.is_alive()]:
            alive[0].join(WATCH_SECONDS)
            progress.refresh()
    except BaseException:
        stop_workers(processes)
        raise
    if all(process.exitcode for process in processes):
        raise UserError(
            f"All {workers.jobs} workers died; run with --jobs 1 to see why."
        )


def stop_workers(processes: Sequence[BaseProcess]) -> None:
    """Interrupt workers, and kill those that do not stop in time."""
    for process in processes:
        if process.pid and process.is_alive():
            os.kill(process.pid, signal.SIGINT)
    deadline = time.monotonic() + GRACE_SECONDS
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        process.kill()
        process.join()


def _worker_main(plan: SweepPlan, url: str, workers: WorkerOptions, job: int) -> None:
    """The main function of a worker process."""
    torch.set_num_threads(workers.num_threads)
    try:
        with ResultsDatabase.open(url) as results:
            device = device_of_worker(workers.device, job, workers.jobs)
            options, seconds = RunOptions(device=device), workers.lease_seconds
            Worker(plan, results, options, lease_seconds=seconds).work()
    except KeyboardInterrupt:
        raise SystemExit(1) from None


# Estimates


def estimate(
    plan: SweepPlan,
    results: ResultsDatabase,
    workers: WorkerOptions,
    *,
    retry: bool = False,
) -> list[dict[str, Any]]:
    """Estimate the size, memory and time of each group of runs."""
    device = device_name(workers.device, workers.num_threads)
    seconds_by_stack = results.mean_seconds_by_stack(device)
    finished = (results.done if retry else results.finished_or_failed)(plan.keys)
    rows = []
    for group in plan.groups:
        left = sum(run.key not in finished for run in group.runs)
        seconds = seconds_by_stack.get(group.stack_key)
        rows.append(
            {
                "bundle": describe(group),
                "shape": group.first.describe(shared=True),
                "settings": len({run.config for run in group.runs}),
                "runs": len(group.runs),
                "left": left,
                "memory_mb": _memory_mb(group, plan),
                "seconds": None if seconds is None else left * seconds,
            }
        )
    return rows


def _memory_mb(group: RunGroup, plan: SweepPlan) -> float | None:
    """The memory of all runs at once, although a group may be split into chunks."""
    try:
        on_meta = network_on_meta(group, plan.data)
    except UserError:
        return None
    if on_meta is None:
        return None
    method, network, graph = on_meta
    per_run = memory_per_run(network, graph, row_wise=method.row_wise)
    return len(group.runs) * per_run / 2**20
