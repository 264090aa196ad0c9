"""A run that was ended goes on where it stood."""

import os
import signal

import dump_files
import pytest
from children import child

from unalike.wiki.collection import SCHEMAS
from unalike.wiki.dumps import collect

WIKI = {"A": ["B", "C", "Gone"], "B": ["A"], "C": "B", "D": ["C", "A"]}
DAYS = ["pageviews-20240101-user.bz2", "pageviews-20240102-user.bz2"]
STAGES = [
    "Reading pages",
    "Reading redirects",
    "Reading targets",
    "Reading links",
    "Placing edges",
    *(f"Reading {day}" for day in DAYS),
    "Writing links",
]


class Listener:
    """Notes the stages; at one of them, something happens."""

    def __init__(self, at="", then=None):
        self.at, self.then, self.met = at, then, []

    def stage(self, what, total, unit):
        self.met.append(what)

    def advance(self, amount, note=""):
        if self.met[-1] == self.at:
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
    collect(folder, tmp_path / "whole")
    return folder


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("stage", STAGES)
def test_an_ended_run_repeats_only_what_was_not_finished(dumps, tmp_path, stage):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        collect(dumps, out, progress=Listener(stage, interrupt))
    assert not out.exists()
    again = Listener()
    collect(dumps, out, progress=again)
    assert again.met == STAGES[STAGES.index(stage) :]
    assert content(out) == content(tmp_path / "whole")


def test_a_killed_run_goes_on(dumps, tmp_path):
    out = tmp_path / "out"
    for stage in ("Reading links", "Writing links"):
        process = child(collect_and_die, dumps, out, stage)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert not out.exists()
    again = Listener()
    collect(dumps, out, progress=again)
    assert again.met == ["Writing links"]
    assert content(out) == content(tmp_path / "whole")
    left = {one.name for one in tmp_path.iterdir() if "out" in one.name}
    assert left == {"out", ".out.lock"}


def test_a_finished_run_is_not_repeated(dumps, tmp_path):
    again = Listener()
    found = collect(dumps, tmp_path / "whole", progress=again)
    assert again.met == []
    assert found.rows("pages") == 3


def test_work_on_other_files_begins_anew(dumps, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        collect(dumps, out, progress=Listener("Placing edges", interrupt))
    dump_files.write({"A": ["B"], "B": []}, dumps)
    again = Listener()
    collect(dumps, out, progress=again)
    assert again.met == STAGES
    assert collect(dumps, out).rows("links") == 1
