"""A sweep runs every run once, also after kills and interruptions."""

import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from forked_processes import child
from sweep_fixtures import (
    outcome,
    recipe_text,
    small_plan,
    small_request,
    stored,
    swept,
    swept_openly,
)

from unalike import Training, UserError, open_graph, run
from unalike.experiments import sweep as sweeps
from unalike.experiments import worker as workers
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.leases import Leases, WorkerId, count_active
from unalike.experiments.plan import SweepRequest, plan_sweep
from unalike.experiments.recipe import parse
from unalike.experiments.run import RunOptions
from unalike.experiments.sweep import WorkerOptions, estimate, sweep
from unalike.experiments.worker import Worker, equal_chunks
from unalike.methods.linkx import LINKX
from unalike.parallel import use_threads


def test_everything_is_run_and_nothing_twice(plan, url, monkeypatch):
    assert sweep(plan, url) == {"runs": 36, "done": 36, "failed": 0}
    first = outcome(url)
    assert len(first) == 36

    def never(*_, **__):
        raise AssertionError("nothing was left to do")

    monkeypatch.setattr(workers, "run_stack", never)
    assert sweep(plan, url)["done"] == 36
    assert outcome(url) == first


def test_the_estimate_uses_the_time_of_finished_runs(plan, url, results):
    before = estimate(plan, results, WorkerOptions())[0]
    assert (before["left"], before["seconds"]) == (12, None)
    assert before["memory_mb"] > 0
    assert before["shape"] == "epochs=5 hidden=4 layers=2"
    sweep(plan_of(plan, plan.groups[:1]), url)
    rows = list(results.runs())
    after, other, _ = estimate(plan, results, WorkerOptions())
    assert (after["left"], after["seconds"]) == (0, 0)
    assert (other["left"], other["seconds"]) == (12, None)
    assert results.mean_seconds_by_stack(rows[0]["device"])[
        plan.groups[0].stack_key
    ] == pytest.approx(sum(row["seconds"] for row in rows) / 12)


def plan_of(plan, groups):
    return type(plan)(groups=groups, seed=plan.seed, data=plan.data)


def failing(options):
    """A network that cannot be built for some options."""
    network = LINKX.network

    def fails(self, graph):
        if any(getattr(self, name) == value for name, value in options.items()):
            raise RuntimeError("this setting is bad")
        return network(self, graph)

    return fails


def test_a_config_that_fails_does_not_affect_others(plan, url, results, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(LINKX, "network", failing({"dropout": 0.5}))
        messages = []
        counts = sweep(plan, url, on_message=messages.append)
    assert counts == {"runs": 36, "done": 18, "failed": 18}
    assert messages == ["A run failed: RuntimeError: this setting is bad"]
    errors = set(results.failed(plan.keys).values())
    (error,) = errors
    assert error.endswith("RuntimeError: this setting is bad")
    assert {row["options"]["dropout"] for row in results.runs()} == {0.0}
    assert sweep(plan, url, on_message=messages.append)["failed"] == 18
    assert messages[1:] == ["18 runs failed before; --retry tries them again."]
    assert [row["left"] for row in estimate(plan, results, WorkerOptions())] == [0] * 3
    again = estimate(plan, results, WorkerOptions(), retry=True)
    assert [row["left"] for row in again] == [6] * 3
    assert sweep(plan, url, retry=True) == {"runs": 36, "done": 36, "failed": 0}
    assert not results.failures()


def test_an_interruption_loses_only_the_running_stack(plan, url, monkeypatch):
    run_stack, calls = workers.run_stack, []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run_stack(*arguments, **options)

    monkeypatch.setattr(workers, "run_stack", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep(plan, url)
    assert len(outcome(url)) == 12
    assert sweep(plan, url)["done"] == 36


@pytest.mark.parametrize(("rounds", "stacks"), [(1, 3), (0, 1)])
def test_splits_that_share_no_choice_are_run_one_by_one(
    tmp_path, url, monkeypatch, rounds, stacks
):
    text = f"""
method = "views-trees"
splits = 3

[grid]
views = [["structure"]]
folds = 3
rounds = {rounds}

[cells]
"{stored(tmp_path)}" = {{}}
"""
    plan = plan_sweep(SweepRequest(recipes=[parse(text, "views")]))
    run_stack, calls = workers.run_stack, []

    def counted(*arguments, **options):
        calls.append(1)
        return run_stack(*arguments, **options)

    monkeypatch.setattr(workers, "run_stack", counted)
    assert sweep(plan, url) == {"runs": 3, "done": 3, "failed": 0}
    assert len(calls) == stacks


def test_an_interruption_that_became_another_error_still_stops_the_sweep(
    plan, url, results, monkeypatch
):
    def convert(*arguments, **options):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise RuntimeError("something in compiled code") from None

    monkeypatch.setattr(workers, "run_stack", convert)
    with pytest.raises(KeyboardInterrupt):
        sweep(plan, url)
    assert not results.failures()
    assert count_active(results.engine) == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def kill_at_random(plan, url, times, lease, rng):
    """Start sweeps and kill them; returns how many were still alive when killed."""
    killed = 0
    for _ in range(times):
        process = child(swept, plan, url, lease)
        process.join(rng.uniform(0.05, 0.4))
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        process.join()
    return killed


@pytest.mark.parametrize("times", [5, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.long
def test_killed_sweeps_resume_to_the_same_results(tmp_path, url, times):
    plan = small_plan(stored(tmp_path), hidden=str(list(range(2, 10))), epochs=30)
    other = f"sqlite:///{tmp_path / 'calm.db'}"
    calm = child(swept, plan, other)
    assert kill_at_random(plan, url, times, 60.0, random.Random(0)) > 0
    sweep(plan, url)
    calm.join()
    assert len(outcome(url)) == len(plan.keys)
    assert outcome(url) == outcome(other)


def read_log(log):
    """The process id and run of each line."""
    return [line.split(": ", 1) for line in log.read_text().splitlines()]


@pytest.mark.long
def test_four_workers_share_the_work(tmp_path, shared_url):
    plan = small_plan(stored(tmp_path), hidden=str(list(range(2, 8))))
    log = tmp_path / "log"
    together = [child(swept_openly, plan, shared_url, log) for _ in range(4)]
    for process in together:
        process.join()
    assert [process.exitcode for process in together] == [0] * 4
    keys = [row[0] for row in outcome(shared_url)]
    assert sorted(keys) == sorted(plan.keys)
    computed = [run for _, run in read_log(log)]
    assert len(computed) == len(set(computed)) == len(keys) == 72


@pytest.mark.long
def test_workers_share_a_group_and_the_runs_of_two_plans(tmp_path, shared_url):
    full = small_plan(stored(tmp_path), hidden="[4]", epochs=200)
    (group,) = full.groups
    some = replace(full, groups=[replace(group, runs=group.runs[3:9])])
    log = tmp_path / "log"
    given = [(full, shared_url, log, 2), (some, shared_url, log, 3)]
    together = [child(swept_openly, *one) for one in given]
    for process in together:
        process.join()
    assert [process.exitcode for process in together] == [0] * 2
    who, computed = zip(*read_log(log), strict=True)
    assert len(computed) == len(set(computed)) == 12
    assert len(set(who)) == 2


@pytest.mark.long
def test_four_workers_of_which_some_are_killed(tmp_path, shared_url):
    plan = small_plan(stored(tmp_path), hidden=str(list(range(2, 8))), epochs=20)
    rng = random.Random(1)
    for _ in range(2):
        together = [child(swept, plan, shared_url) for _ in range(4)]
        time.sleep(rng.uniform(0.2, 0.8))
        for process in together[:2]:
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
        for process in together:
            process.join()
    keys = [row[0] for row in outcome(shared_url)]
    assert sorted(keys) == sorted(plan.keys)


def test_processes_of_one_sweep(plan, url):
    assert sweep(plan, url, workers=WorkerOptions(jobs=2))["done"] == 36
    assert len(outcome(url)) == 36


def test_each_process_takes_its_share_of_the_device(plan, url, monkeypatch):
    asked, threads = [], torch.get_num_threads()

    def shared(*given):
        asked.append(given)
        return "cpu"

    monkeypatch.setattr(sweeps, "device_of_worker", shared)
    sweeps._worker_main(plan, url, WorkerOptions(jobs=3, device="cuda"), 1)
    torch.set_num_threads(threads)
    assert asked == [("cuda", 1, 3)]
    assert len(outcome(url)) == 36


def test_processes_share_the_cores_beside_a_gpu(monkeypatch):
    monkeypatch.setattr(sweeps, "num_cores", lambda: 8)
    assert WorkerOptions(jobs=2, device="cuda").num_threads == 4
    assert WorkerOptions(jobs=2).num_threads == 1
    with pytest.raises(UserError, match="--threads is 0"):
        WorkerOptions(threads=0)


@pytest.mark.parametrize("method", ["mlp", "gcn"])
def test_scores_do_not_depend_on_the_threads_of_the_machine(tmp_path, method):
    """Batch norm sums in another order with another number of threads."""
    folder = stored(tmp_path, nodes=400)
    text = recipe_text(folder, hidden="[16]", epochs=60).replace("linkx", method)
    request = replace(small_request(folder), recipes=[parse(text, "small")])
    plan, found = plan_sweep(request), []
    for threads in (1, 2, 3):
        url = f"sqlite:///{tmp_path / f'{threads}.db'}"
        with use_threads(threads):
            sweep(plan, url)
            assert torch.get_num_threads() == threads
        with ResultsDatabase.open(url) as results:
            found.append([row["curve"] for row in results.runs(curves=True)])
    assert found[0] == found[1] == found[2]


def test_workers_that_all_die_are_reported(plan, url, monkeypatch):
    monkeypatch.setattr(sweeps, "_worker_main", os._exit)
    with pytest.raises(UserError, match="All 2 workers died"):
        sweep(plan, url, workers=WorkerOptions(jobs=2))


def test_no_graph_is_prepared_for_runs_that_others_have(plan, results, monkeypatch):
    group = plan.groups[0]
    theirs = Leases(results.engine, 60.0, WorkerId("elsewhere", 1, "x"))
    assert theirs.acquire([run.key for run in group.runs])
    monkeypatch.setattr(
        Worker, "max_stack_size", lambda *_: pytest.fail("prepared the graph")
    )
    assert not Worker(plan, results, RunOptions()).process_group(group)


def test_a_group_that_does_not_fit_is_split_into_equal_chunks(plan):
    runs = plan.groups[0].runs
    chunks = list(equal_chunks(runs, len(runs) - 1))
    assert [len(chunk) for chunk in chunks] == [len(runs) // 2] * 2
    assert sum(chunks, ()) == runs


def test_the_graph_of_a_group_is_prepared_once(plan, url, monkeypatch):
    prepare, calls = LINKX.prepare, []

    def counted(method, graph):
        calls.append(method.hidden)
        return prepare(method, graph)

    monkeypatch.setattr(LINKX, "prepare", counted)
    sweep(plan, url)
    assert calls == [4, 8, 12]


def test_a_cpu_records_no_result_as_bf16(tmp_path, url):
    folder = stored(tmp_path)
    text = recipe_text(folder, hidden="[4]", epochs=2) + "\n"
    text = text.replace("layers = 2", 'layers = 2\nprecision = "bf16"')
    request = small_request(folder)
    request = replace(request, recipes=[parse(text, "small")])
    plan = plan_sweep(request)
    with pytest.raises(UserError, match="bf16 needs a GPU"):
        sweep(plan, url)
    with ResultsDatabase.open(url) as results:
        assert not results.finished_or_failed(plan.keys)
    method = LINKX(hidden=4, training=Training(epochs=1, precision="bf16"))
    (result,) = run(open_graph(Path(folder)), method, splits=[0])
    assert result.options["precision"] == "float32"


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.5, float("nan")])
def test_a_lease_too_short_to_renew_is_refused(seconds):
    with pytest.raises(UserError, match=r"--lease is .*; at least 1 second is needed"):
        WorkerOptions(lease_seconds=seconds)


def test_the_estimate_uses_the_time_of_runs_with_as_many_threads(plan, url, results):
    threads = torch.get_num_threads()
    workers = WorkerOptions(jobs=2, threads=2)
    sweeps._worker_main(plan_of(plan, plan.groups[:1]), url, workers, 0)
    torch.set_num_threads(threads)
    first, *_ = estimate(plan, results, workers)
    assert (first["left"], first["seconds"]) == (0, 0)
    alone, *_ = estimate(plan, results, WorkerOptions())
    assert alone["seconds"] is None
