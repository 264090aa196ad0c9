"""Several hosts, each a network namespace: they train and sweep together."""

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import namespaces
import postgres
import pytest
from sweep_fixtures import outcome, recipe_text, small_plan, stored, swept

from unalike.experiments.database import ResultsDatabase

pytestmark = pytest.mark.hosts

SECONDS = 300
GATED = Path(__file__).with_name("gated_training.py")
HOW = {"hidden": "[4, 8, 12, 16, 20]", "epochs": 60}
# A network that is silent for so long is taken for lost.
IMPATIENT = "tcp_user_timeout=2000&connect_timeout=2"


@pytest.fixture
def network():
    """A way to have hosts, which are gone after the test."""
    if reason := namespaces.why_not():
        pytest.skip(reason)
    with ExitStack() as stack:
        yield lambda count: stack.enter_context(namespaces.hosts(count))


def python(host, log, *words):
    """A program that has begun on a host; what it says goes to a file."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": namespaces.CABLE,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    with log.open("w") as output:
        return host.start(
            sys.executable, *words, stdout=output, stderr=output, env=environment
        )


def torchrun(host, first, log, *words, restarts=0):
    meet = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{first.name}:29400"]
    size = ["--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", str(restarts)]
    launcher = ["-m", "torch.distributed.run", *meet, *size]
    return python(host, log, *launcher, *map(str, words))


def ended(processes, logs):
    """Wait for programs; the statuses they end with."""
    try:
        return [process.wait(SECONDS) for process in processes]
    except subprocess.TimeoutExpired:
        pytest.fail("\n".join(log.read_text() for log in logs))


def until(happened, logs):
    end = time.monotonic() + SECONDS
    while not happened():
        if time.monotonic() > end:
            pytest.fail("\n".join(log.read_text() for log in logs))
        time.sleep(0.5)


def train_words(graph, folder, name):
    words = ["train", graph, "linkx", "--splits", "0", "--epochs", "20", "--json"]
    return ["-m", "unalike", *words, "--save", str(folder / name)]


def scores(log):
    (document,) = re.findall(r"^\{$.*^\}$", log.read_text(), re.DOTALL | re.MULTILINE)
    (row,) = json.loads(document)["splits"]
    return {name: row[name] for name in ("train", "valid", "test", "best_epoch")}


def test_two_hosts_train_what_one_trains(network, tmp_path):
    first, second = network(2)
    graph = stored(tmp_path, nodes=120)
    logs = [tmp_path / name for name in ("alone.log", "first.log", "second.log")]
    alone = python(first, logs[0], *train_words(graph, tmp_path, "alone"))
    assert ended([alone], logs[:1]) == [0]
    words = train_words(graph, tmp_path, "both")
    both = [
        torchrun(host, first, log, *words)
        for host, log in zip((first, second), logs[1:], strict=True)
    ]
    assert ended(both, logs[1:]) == [0, 0]
    assert scores(logs[1]) == scores(logs[0])
    assert (tmp_path / "both").read_bytes() == (tmp_path / "alone").read_bytes()


def losses(log):
    """How often a program has reported a lost or late process."""
    return log.read_text().count("was lost or is late")


def test_a_cut_cable_is_noticed_and_changes_nothing(network, tmp_path):
    first, second = network(2)
    logs = [tmp_path / "first.log", tmp_path / "second.log"]
    both = [
        torchrun(host, first, log, GATED, tmp_path, restarts=3)
        for host, log in zip((first, second), logs, strict=True)
    ]
    until(lambda: len(list(tmp_path.glob("reached-*"))) == 2, logs)
    # A host that was late at the start of a busy machine has said so before the cut.
    before = [losses(log) for log in logs]
    second.cut()
    (tmp_path / "open").touch()
    until(
        lambda: all(losses(log) > n for log, n in zip(logs, before, strict=True)), logs
    )
    assert not (tmp_path / "answer").exists()
    second.heal()
    assert ended(both, logs) == [0, 0]
    recovered, epoch = pickle.loads((tmp_path / "answer").read_bytes())
    assert epoch > 0
    log = tmp_path / "alone.log"
    assert ended([python(first, log, str(GATED), str(tmp_path))], [log]) == [0]
    assert pickle.loads((tmp_path / "answer").read_bytes()) == (recovered, 0)


def test_hosts_with_other_data_fail_with_one_error(network, tmp_path):
    first, second = network(2)
    logs = [tmp_path / "first.log", tmp_path / "second.log"]
    graphs = [stored(tmp_path / "a", nodes=60), stored(tmp_path / "b", nodes=61)]
    both = [
        torchrun(host, first, log, *train_words(graph, tmp_path, "model"))
        for host, log, graph in zip((first, second), logs, graphs, strict=True)
    ]
    assert ended(both, logs) == [1, 1]
    said = "".join(log.read_text() for log in logs)
    assert said.count("Processes differ in data: 0 has") == 1
    assert not (tmp_path / "model").exists()


def worker(host, log, recipe, url):
    words = ["sweep", str(recipe), "--results", url, "--lease", "3", "--device", "cpu"]
    return python(host, log, "-m", "unalike", *words)


def num_done(url):
    with ResultsDatabase.open(url) as results:
        return len(list(results.runs()))


def test_a_sweep_outlives_workers_and_cables(network, tmp_path):
    keeper, second, third = network(3)
    graph = stored(tmp_path)
    plan, expected = small_plan(graph, **HOW), f"sqlite:///{tmp_path / 'alone.db'}"
    recipe = tmp_path / "small.toml"
    recipe.write_text(recipe_text(graph, **HOW))
    logs = [tmp_path / name for name in ("killed.log", "cut.log", "late.log")]
    with postgres.serving(enter=keeper.words, address=keeper.address) as server:
        url = f"{server.url}&{IMPATIENT}"
        killed = worker(second, logs[0], recipe, url)
        cut = worker(third, logs[1], recipe, url)
        until(lambda: num_done(server.here), logs)
        os.kill(killed.pid, signal.SIGKILL)
        third.cut()
        assert num_done(server.here) < len(plan.keys)
        until(lambda: "The database is away" in logs[1].read_text(), logs)
        late = worker(second, logs[2], recipe, url)
        third.heal()
        assert ended([killed, cut, late], logs) == [-signal.SIGKILL, 0, 0]
        assert logs[1].read_text().count("The database is away") == 1
        swept(plan, expected)
        assert outcome(server.here) == outcome(expected)
