"""Killed work goes on to the same output, and killed launchers leave no process."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from fake_wiki import FakeWiki
from forked_processes import child
from graphs import suiting, tasks_of
from sweep_fixtures import outcome, small_plan, stored, swept
from wiki_proxy import fronting

import unalike
from unalike import random_splits, save_graph
from unalike.files import atomic_write
from unalike.methods.base import train_stacks
from unalike.training.checkpoint import Checkpoint
from unalike.wiki.api_client import CrawlPolicy
from unalike.wiki.crawl import crawl

ROWS = 20_000
PAGES = {f"P{i}": [f"P{(i * k + 1) % 30}" for k in range(4)] for i in range(30)}


def sweep_runs(folder: Path) -> None:
    plan = small_plan(str(folder / "small"), hidden="[4, 8]", epochs=20)
    swept(plan, f"sqlite:///{folder / 'results.db'}")


def swept_runs(folder: Path) -> object:
    return outcome(f"sqlite:///{folder / 'results.db'}")


def train(folder: Path) -> None:
    """Train with a save after every epoch; the scores are a file."""
    torch.set_num_threads(1)
    keep = Checkpoint(folder / "state", "runs", every=0.0)
    method = unalike.LINKX(hidden=4, training=unalike.Training(epochs=20))
    (solution,) = train_stacks(
        [method], tasks_of(suiting(nodes=40), 1), checkpoint=keep
    )
    with atomic_write(folder / "scores.json") as partial:
        partial.write_text(json.dumps(solution.scores.tolist()))


def trained(folder: Path) -> object:
    assert not list(folder.glob("state*"))
    return json.loads((folder / "scores.json").read_text())


def import_tables(folder: Path) -> None:
    if not (folder / "graph").exists():
        unalike.import_graph(folder / "edges.csv", out=folder / "graph")


def imported(folder: Path) -> object:
    adjacency = unalike.verify_graph(folder / "graph").graph.adjacency
    assert not list(folder.glob(".graph.*"))
    return adjacency.indptr.tolist(), adjacency.indices.tolist()


def crawl_pages(folder: Path) -> None:
    address = (folder / "address").read_text()
    policy = CrawlPolicy(rate=0.0, concurrency=2)
    crawl(address, "P1", 20, folder / "pages", policy=policy)


def crawled(folder: Path) -> object:
    pages = folder / "pages"
    assert not (folder / ".pages.crawl").exists()
    return {path.name: path.read_bytes() for path in pages.glob("*.parquet")}


WORK = {
    "sweep": (sweep_runs, swept_runs, 1.0),
    "training": (train, trained, 1.0),
    "import": (import_tables, imported, 0.3),
    "crawl": (crawl_pages, crawled, 0.6),
}
"""What is killed, what it leaves behind, and about how many seconds it takes."""


@pytest.fixture
def prepared(tmp_path):
    """Make a folder with the inputs of all kinds of work."""
    with fronting(FakeWiki(PAGES)) as front:
        front.pause = 0.01

        def prepare(name: str) -> Path:
            folder = tmp_path / name
            folder.mkdir()
            stored(folder)
            (folder / "address").write_text(front.address)
            lines = (f"n{i},n{(i * i) % ROWS}\n" for i in range(ROWS))
            (folder / "edges.csv").write_text("source,target\n" + "".join(lines))
            return folder

        yield prepare


@pytest.mark.long
@pytest.mark.parametrize("name", WORK)
def test_killed_work_goes_on_to_the_same_output(prepared, name, kills):
    work, output, seconds = WORK[name]
    calm = prepared("calm")
    work(calm)
    expected, killed = output(calm), 0
    for number, rng in enumerate(kills):
        folder = prepared(str(number))
        for _ in range(rng.randrange(1, 4)):
            process = child(work, folder)
            process.join(rng.uniform(0.0, seconds))
            if process.is_alive():
                process.kill()
                killed += 1
            process.join()
        work(folder)
        assert output(folder) == expected
    assert killed


def processes_of(word: str) -> list[int]:
    """Process ids of commands with this word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words:
            found.append(int(path.parent.name))
    return found


def wait_until(condition, seconds: float = 90.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.2)
    return condition()


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_workers_end_when_their_parent_is_killed(tmp_path):
    graph, folder = suiting(nodes=20), tmp_path / "graph"
    save_graph(folder, graph, splits=random_splits(graph.labels, count=1))
    words = ["train", str(folder), "link", "--processes", "2"]
    words += ["--epochs", "9999999", "--patience", "9999999"]
    command = [sys.executable, "-m", "unalike", *words]
    parent = subprocess.Popen(command, stdout=-3, stderr=-3)
    try:
        assert wait_until(lambda: len(processes_of(str(folder))) == 3)
        time.sleep(15)
        assert parent.poll() is None
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        assert wait_until(lambda: not processes_of(str(folder)))
    finally:
        for pid in processes_of(str(folder)):
            os.kill(pid, signal.SIGKILL)
