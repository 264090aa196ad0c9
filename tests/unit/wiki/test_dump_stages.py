"""A run that was stopped resumes after its last finished stage."""

import os
import signal

import dump_files
import pytest
from forked_processes import child

from unalike.wiki.collection import SCHEMAS
from unalike.wiki.dumps import collect

WIKI = {"A": ["B", "C", "Gone"], "B": ["A"], "C": "B", "D": ["C", "A"]}
DAYS = ["pageviews-20240101-user.bz2", "pageviews-20240102-user.bz2"]
STAGES = [
    "Reading pages",
    "Reading redirects",
    "Reading targets",
    "Reading links",
    "Building CSR rows",
    *(f"Reading {day}" for day in DAYS),
    "Writing links",
]


class Listener:
    """Records the stages, and calls a function in one of them."""

    def __init__(self, at="", then=None):
        self.at, self.then, self.stages = at, then, []

    def stage(self, what, total, unit):
        self.stages.append(what)

    def advance(self, amount, note=""):
        if self.stages[-1] == self.at:
            self.then()


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def collect_and_die(dumps, out, stage):
    collect(dumps, out, progress=Listener(stage, die))


def content(folder):
    return {name: (folder / f"{name}.parquet").read_bytes() for name in SCHEMAS}


@pytest.fixture
def dumps(tmp_path):
    folder = dump_files.write(WIKI, tmp_path / "dumps")
    for count, day in enumerate(DAYS):
        views = {"A": 3 + count, "B": 1}
        dump_files.write_views(views, folder / day, codes=["test.wikipedia"])
    collect(folder, tmp_path / "full")
    return folder


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.long
def test_a_stopped_run_repeats_only_unfinished_stages(dumps, tmp_path, stage):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        collect(dumps, out, progress=Listener(stage, interrupt))
    assert not out.exists()
    again = Listener()
    collect(dumps, out, progress=again)
    assert again.stages == STAGES[STAGES.index(stage) :]
    assert content(out) == content(tmp_path / "full")


@pytest.mark.long
def test_a_killed_run_resumes(dumps, tmp_path):
    out = tmp_path / "out"
    for stage in ("Reading links", "Writing links"):
        process = child(collect_and_die, dumps, out, stage)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert not out.exists()
    again = Listener()
    collect(dumps, out, progress=again)
    assert again.stages == ["Writing links"]
    assert content(out) == content(tmp_path / "full")
    left = {path.name for path in tmp_path.iterdir() if "out" in path.name}
    assert left == {"out", ".out.lock"}


def test_a_finished_run_is_not_repeated(dumps, tmp_path):
    again = Listener()
    collection = collect(dumps, tmp_path / "full", progress=again)
    assert again.stages == []
    assert collection.num_rows("pages") == 3


def test_changed_files_start_a_new_run(dumps, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        collect(dumps, out, progress=Listener("Building CSR rows", interrupt))
    dump_files.write({"A": ["B"], "B": []}, dumps)
    again = Listener()
    collect(dumps, out, progress=again)
    assert again.stages == STAGES
    assert collect(dumps, out).num_rows("links") == 1
