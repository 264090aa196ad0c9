"""Killed launchers leave no processes behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from graphs import suiting

from unalike import random_splits, save_graph


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
    words = ["train", str(folder), "link", "--processes", "2", "--epochs", "9999999"]
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
