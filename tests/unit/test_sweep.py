"""A sweep runs everything once, whatever happens."""

import os
import random
import signal
import time
from dataclasses import replace

import pytest
import torch
from children import child
from sweeps import (
    outcome,
    small_agenda,
    small_order,
    stored,
    swept,
    swept_openly,
)

from unalike import UserError
from unalike.experiments import sweep as sweeps
from unalike.experiments import worker as workers
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.leases import Leases, WorkerId, count_active
from unalike.experiments.plan import plan_sweep
from unalike.experiments.run import RunOptions
from unalike.experiments.sweep import WorkerOptions, estimate, sweep
from unalike.experiments.worker import Worker
from unalike.methods.linkx import LINKX


def test_everything_is_run_and_nothing_twice(agenda, url, monkeypatch):
    assert sweep(agenda, url) == {"runs": 36, "done": 36, "failed": 0}
    first = outcome(url)
    assert len(first) == 36

    def never(*_, **__):
        raise AssertionError("nothing was left to do")

    monkeypatch.setattr(workers, "run_stack", never)
    assert sweep(agenda, url)["done"] == 36
    assert outcome(url) == first


def test_the_forecast_knows_the_time_of_shapes_that_were_run(agenda, url, results):
    before = estimate(agenda, results, "cpu")[0]
    assert (before["left"], before["seconds"]) == (12, None)
    assert before["memory_mb"] > 0
    assert before["shape"] == "epochs=5 hidden=4 layers=2"
    sweep(plan_of(agenda, agenda.bundles[:1]), url)
    rows = list(results.runs())
    after, other, _ = estimate(agenda, results, "cpu")
    assert (after["left"], after["seconds"]) == (0, 0)
    assert (other["left"], other["seconds"]) == (12, None)
    assert results.seconds(rows[0]["device"])[agenda.bundles[0].shape] == pytest.approx(
        sum(row["seconds"] for row in rows) / 12
    )


def plan_of(agenda, bundles):
    return type(agenda)(bundles=bundles, seed=agenda.seed, data=agenda.data)


def failing(options):
    """A network that cannot be built for some options."""
    network = LINKX.network

    def fails(self, graph):
        if any(getattr(self, name) == value for name, value in options.items()):
            raise RuntimeError("this setting is bad")
        return network(self, graph)

    return fails


def test_a_setting_that_fails_spoils_no_other(agenda, url, results, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(LINKX, "network", failing({"dropout": 0.5}))
        told = []
        found = sweep(agenda, url, remark=told.append)
    assert found == {"runs": 36, "done": 18, "failed": 18}
    assert told == ["A run failed: RuntimeError: this setting is bad"]
    errors = set(results.failed(agenda.keys).values())
    (error,) = errors
    assert error.endswith("RuntimeError: this setting is bad")
    assert {row["options"]["dropout"] for row in results.runs()} == {0.0}
    assert sweep(agenda, url, remark=told.append)["failed"] == 18
    assert told[1:] == ["18 runs failed before; --retry tries them again."]
    assert [row["left"] for row in estimate(agenda, results, "cpu")] == [0] * 3
    again = estimate(agenda, results, "cpu", retry=True)
    assert [row["left"] for row in again] == [6] * 3
    assert sweep(agenda, url, retry=True) == {"runs": 36, "done": 36, "failed": 0}
    assert not results.failures()


def test_an_interruption_costs_the_running_stack_alone(agenda, url, monkeypatch):
    run_together, calls = workers.run_stack, []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run_together(*arguments, **options)

    monkeypatch.setattr(workers, "run_stack", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep(agenda, url)
    assert len(outcome(url)) == 12
    assert sweep(agenda, url)["done"] == 36


def test_an_interruption_that_became_another_error_still_stops(
    agenda, url, results, monkeypatch
):
    def turned(*arguments, **options):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise RuntimeError("something in compiled code") from None

    monkeypatch.setattr(workers, "run_stack", turned)
    with pytest.raises(KeyboardInterrupt):
        sweep(agenda, url)
    assert not results.failures()
    assert count_active(results.engine) == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def kill_at_random(agenda, url, times, lease, chance):
    """Start sweeps and kill them; returns how many were still alive when killed."""
    killed = 0
    for _ in range(times):
        process = child(swept, agenda, url, lease)
        process.join(chance.uniform(0.05, 0.4))
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        process.join()
    return killed


@pytest.mark.parametrize("times", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_kills_change_nothing(tmp_path, url, times):
    agenda = small_agenda(stored(tmp_path), hidden=str(list(range(2, 10))), epochs=30)
    other = f"sqlite:///{tmp_path / 'calm.db'}"
    calm = child(swept, agenda, other)
    assert kill_at_random(agenda, url, times, 60.0, random.Random(0)) > 0
    sweep(agenda, url)
    calm.join()
    assert len(outcome(url)) == len(agenda.keys)
    assert outcome(url) == outcome(other)


def told_in(log):
    """Who computed which run."""
    return [line.split(": ", 1) for line in log.read_text().splitlines()]


def test_four_workers_share_the_work(tmp_path, shared_url):
    agenda = small_agenda(stored(tmp_path), hidden=str(list(range(2, 8))))
    log = tmp_path / "log"
    together = [child(swept_openly, agenda, shared_url, log) for _ in range(4)]
    for process in together:
        process.join()
    assert [process.exitcode for process in together] == [0] * 4
    keys = [row[0] for row in outcome(shared_url)]
    assert sorted(keys) == sorted(agenda.keys)
    computed = [run for _, run in told_in(log)]
    assert len(computed) == len(set(computed)) == len(keys) == 72


def test_workers_share_a_bundle_and_what_two_agendas_ask_for(tmp_path, shared_url):
    whole = small_agenda(stored(tmp_path), hidden="[4]", epochs=200)
    (bundle,) = whole.bundles
    some = replace(whole, bundles=[replace(bundle, runs=bundle.runs[3:9])])
    log = tmp_path / "log"
    given = [(whole, shared_url, log, 2), (some, shared_url, log, 3)]
    together = [child(swept_openly, *one) for one in given]
    for process in together:
        process.join()
    assert [process.exitcode for process in together] == [0] * 2
    who, computed = zip(*told_in(log), strict=True)
    assert len(computed) == len(set(computed)) == 12
    assert len(set(who)) == 2


def test_four_workers_of_which_some_are_killed(tmp_path, shared_url):
    agenda = small_agenda(stored(tmp_path), hidden=str(list(range(2, 8))), epochs=20)
    chance = random.Random(1)
    for _ in range(2):
        together = [child(swept, agenda, shared_url) for _ in range(4)]
        time.sleep(chance.uniform(0.2, 0.8))
        for process in together[:2]:
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
        for process in together:
            process.join()
    keys = [row[0] for row in outcome(shared_url)]
    assert sorted(keys) == sorted(agenda.keys)


def test_processes_of_one_sweep(agenda, url):
    assert sweep(agenda, url, crew=WorkerOptions(jobs=2))["done"] == 36
    assert len(outcome(url)) == 36


def test_each_process_takes_its_share_of_the_device(agenda, url, monkeypatch):
    asked, threads = [], torch.get_num_threads()

    def shared(*given):
        asked.append(given)
        return "cpu"

    monkeypatch.setattr(sweeps, "device_of_worker", shared)
    sweeps._worker_main(agenda, url, WorkerOptions(jobs=3, device="cuda"), 1)
    torch.set_num_threads(threads)
    assert asked == [("cuda", 1, 3)]
    assert len(outcome(url)) == 36


def test_workers_that_all_die_are_reported(agenda, url, monkeypatch):
    monkeypatch.setattr(sweeps, "_worker_main", os._exit)
    with pytest.raises(UserError, match="All 2 workers died"):
        sweep(agenda, url, crew=WorkerOptions(jobs=2))


def test_no_graph_is_prepared_for_runs_that_others_have(agenda, results, monkeypatch):
    bundle = agenda.bundles[0]
    theirs = Leases(results.engine, 60.0, WorkerId("elsewhere", 1, "x"))
    assert theirs.take([run.key for run in bundle.runs])
    monkeypatch.setattr(Worker, "room", lambda *_: pytest.fail("looked for room"))
    assert not Worker(agenda, results, RunOptions()).attend(bundle)


def test_a_bundle_that_does_not_fit_is_cut_into_equal_parts(tmp_path, monkeypatch):
    agenda = plan_sweep(small_order(stored(tmp_path)))
    bundle = agenda.bundles[0]
    monkeypatch.setattr(Worker, "room", lambda *_: len(bundle.runs) - 1)
    with ResultsDatabase.open(f"sqlite:///{tmp_path / 'r.db'}") as results:
        parts = list(Worker(agenda, results, RunOptions()).parts(bundle))
    assert [len(part) for part in parts] == [len(bundle.runs) // 2] * 2
    assert sum(parts, ()) == bundle.runs
