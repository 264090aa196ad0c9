"""`unalike bench scale`: traffic, memory and predictions."""

import json
import os
import subprocess
import sys
from io import StringIO

import pytest
import torch
from command_server import command
from graphs import suiting
from processes import together
from rich.console import Console

from unalike import random_splits, save_graph
from unalike.cli.main import main
from unalike.formatting import format_duration
from unalike.reports.benchmarks import (
    format_count,
    memory_table,
    plot_scaling,
    predicted_lines,
    time_table,
)
from unalike.reports.plotting import save_figure
from unalike.training.distributed import World

HIDDEN, BATCH = 8, 20


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    graph = suiting(nodes=80)
    splits = random_splits(graph.labels, count=1)
    folder = tmp_path_factory.mktemp("scale") / "likes"
    return save_graph(folder, graph, splits=splits)


@pytest.fixture(scope="module")
def found(stored):
    words = ["--graph", str(stored.folder), "--processes", "1", "2", "--repeats", "1"]
    shape = ["--hidden", str(HIDDEN), "--rows", str(BATCH), "--hosts", "8", "--json"]
    done = subprocess.run(
        [command(), "bench", "scale", *words, *shape],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    unexpected = [
        line for line in done.stderr.splitlines() if not line.startswith("processes: ")
    ]
    assert (done.returncode, unexpected) == (0, [])
    return json.loads(done.stdout)


@pytest.mark.long
def test_bytes_follow_the_formula(found, stored):
    alone, two = found["measured"]
    assert alone["step_bytes"] == alone["epoch_bytes"] == 0
    product = BATCH * HIDDEN * 4
    assert two["step_bytes_formula"] == 2 * product
    # Of two processes the first sends sums and the second sends totals.
    assert two["step_bytes"] == two["most_step_bytes"] == product
    (split,) = stored.splits()
    rows = len(split.train) + len(split.valid)
    assert two["epoch_bytes"] == rows * HIDDEN * 4


def test_the_table_is_shared_and_every_process_has_a_peak(found):
    alone, two = found["measured"]
    assert alone["table_bytes"] == 80 * HIDDEN * 4 * 4
    assert alone["table_bytes"] / 2 <= two["table_bytes"] < alone["table_bytes"]
    assert min(alone["peak_bytes"], two["peak_bytes"]) > two["table_bytes"]
    assert alone["times_first"] == 1
    assert min(row["seconds"] for row in found["measured"]) > 0


def test_output_separates_measured_from_extrapolated(found):
    console = Console(width=120, record=True, file=StringIO())
    for part in (time_table(found), memory_table(found), *predicted_lines(found)):
        console.print(part)
    output = console.export_text()
    assert "Measured: 80 nodes" in output
    assert "name more widths and batches" in output
    assert "Extrapolated: 1,000,000,000 nodes, 100,000,000,000 edges" in output
    assert "8 hosts of 16 cores" in " ".join(output.split())


def test_measured_and_extrapolated_are_plotted(found, tmp_path):
    save_figure(plot_scaling(found), tmp_path / "scale.svg")
    drawn = (tmp_path / "scale.svg").read_text()
    assert "hidden 8, batch 20" in drawn
    assert drawn.count("measured:") == drawn.count("extrapolated:") == 2


def counted():
    """Bytes that a process receives in a pipeline of three, and in an all-reduce."""
    world, numbers = World.current(), torch.ones(5, 2)
    world.recv_from_previous(numbers)
    sent = world.isend_to_next(numbers)
    if sent is not None:
        sent.wait()
    world.broadcast_from_last(numbers)
    chain = vars(world.traffic).copy()
    world.all_reduce(numbers)
    return chain, world.traffic.received - chain["received"]


@pytest.mark.long
def test_each_process_counts_received_bytes():
    chains, sums = zip(*together(3, counted), strict=True)
    assert [chain["received"] for chain in chains] == [40, 80, 40]
    assert [chain["messages"] for chain in chains] == [1, 2, 1]
    assert sums == (53, 53, 53)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--processes", "0"], "--processes needs numbers from 1 on"),
        (["--rows"], "--rows needs numbers from 1 on"),
        (["--hosts", "0"], "--hosts is 0"),
        (["--processes", "81"], "80 columns cannot be divided among 81"),
        (["--plot", "x.bmp"], "x.bmp"),
    ],
)
def test_mistakes_give_one_line(stored, capsys, words, message):
    assert main(["bench", "scale", "--graph", str(stored.folder), *words]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "1 s"), (90, "2 min"), (7200, "2.0 h")]
)
def test_durations_have_units(seconds, text):
    assert format_duration(float(seconds)) == text


@pytest.mark.parametrize(
    ("count", "text"), [(10**11, "100 billion"), (2_500_000, "2.5 million"), (7, "7")]
)
def test_counts_are_in_billions_millions_or_thousands(count, text):
    assert format_count(count) == text
