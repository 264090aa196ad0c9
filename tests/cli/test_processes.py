"""`unalike train` in several processes, and `unalike shard` before it."""

import json
import os
import pickle
import subprocess
import sys

import pytest
from command_server import command
from graphs import suiting

from unalike import random_splits, save_graph
from unalike.cli.main import main

SECONDS = 300
SOURCES = os.pathsep.join(sys.path)
QUICK = ["--epochs", "5", "--splits", "0"]


@pytest.fixture
def stored(tmp_path):
    graph = suiting(nodes=80)
    splits = random_splits(graph.labels, count=1)
    return str(save_graph(tmp_path / "likes", graph, splits=splits).folder)


def ran(*program_and_words):
    """A program that has run, with one thread for each of its processes."""
    return subprocess.run(
        program_and_words,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCES},
        check=False,
    )


def complaints(text):
    """Lines of standard error, but for the notice that something is compiled."""
    lines = text.splitlines()
    return [line for line in lines if not line.startswith("note: compiling once")]


def scores(text):
    (row,) = json.loads(text)["splits"]
    return {name: row[name] for name in ("train", "valid", "test", "best_epoch")}


@pytest.mark.slow
def test_shards_are_trained_by_as_many_processes(stored, tmp_path, capsys):
    assert main(["shard", stored, "--parts", "2", "--out", f"{tmp_path}/two"]) == 0
    assert capsys.readouterr().out.count("shard ") == 2
    assert main(["train", stored, "linkx", *QUICK, "--json"]) == 0
    alone = scores(capsys.readouterr().out)
    words = ["train", f"{tmp_path}/two", "linkx", *QUICK, "--json"]
    many = ran(command(), *words, "--processes", "2")
    assert (many.returncode, complaints(many.stderr)) == (0, [])
    assert scores(many.stdout) == alone


@pytest.mark.long
def test_what_is_wrong_everywhere_is_said_once(stored):
    many = ran(command(), "train", stored, "gcn", *QUICK, "--processes", "2")
    assert many.returncode == 1
    (complaint,) = complaints(many.stderr)
    assert many.stdout == ""
    assert "gcn cannot be divided among 2 processes" in complaint


@pytest.mark.slow
def test_batches_are_shared_out_among_processes(stored):
    words = ["train", stored, "gcn", *QUICK, "--json", "--processes", "2"]
    many = ran(command(), *words, "random-parts", "--parts", "3")
    assert (many.returncode, complaints(many.stderr)) == (0, [])
    assert scores(many.stdout)["valid"] > 0.5


def test_shards_are_printed_as_json(stored, tmp_path, capsys):
    words = ["shard", stored, "--parts", "3", "--out", f"{tmp_path}/three", "--json"]
    assert main(words) == 0
    output = json.loads(capsys.readouterr().out)["shards"]
    assert [shard["columns"][0] for shard in output[1:]] == [
        shard["columns"][1] for shard in output[:-1]
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "{}", "link", "--processes", "0"], "--processes is 0"),
        (["shard", "{}", "--parts", "81", "--out", "{}/x"], "80 columns cannot be"),
        (["shard", "{}", "--parts", "2", "--out", "{}"], "exists already"),
    ],
)
def test_mistakes_give_an_error_of_one_line(stored, capsys, words, message):
    assert main([word.format(stored) for word in words]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert message in err


KILLED = """
import os, pickle, signal, sys
import torch
from pathlib import Path
from graphs import suiting, tasks_of
from unalike.methods.linkx import LINKX
from unalike.methods.base import train_stacks
from unalike.training.checkpoint import Checkpoint
from unalike.training.loop import FullBatchEpochs
from unalike.training.state import Training
from unalike.training.distributed import init_distributed

folder, rank, epoch = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
run_epoch = FullBatchEpochs.run_epoch
lasts = []

def dies(self):
    first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "1") == "0"
    if first and self.state.epoch == epoch and os.environ["RANK"] == str(rank):
        os.kill(os.getpid(), signal.SIGKILL)
    lasts.append(self.state.epoch)
    run_epoch(self)

FullBatchEpochs.run_epoch = dies
torch.set_num_threads(1)
with init_distributed() as world:
    keep = Checkpoint(folder / "state", "key", every=0.0)
    method = LINKX(hidden=8, layers=2, training=Training(epochs=12))
    (one,) = train_stacks([method], tasks_of(suiting()), checkpoint=keep)
    if world.is_main:
        output = (one.scores.tolist(), one.curve.losses, one.curve.valid_scores)
        (folder / "answer").write_bytes(pickle.dumps((output, lasts[0])))
"""


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_is_replaced_and_changes_nothing(tmp_path, rank):
    script = tmp_path / "work.py"
    script.write_text(KILLED)
    words = [str(script), str(tmp_path), str(rank), "7"]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    many = ran(sys.executable, *launcher, "--max-restarts", "1", *words)
    assert many.returncode == 0, many.stderr
    output, first = pickle.loads((tmp_path / "answer").read_bytes())
    assert first >= 6
    assert ran(sys.executable, *words).returncode == 0
    assert pickle.loads((tmp_path / "answer").read_bytes()) == (output, 0)
