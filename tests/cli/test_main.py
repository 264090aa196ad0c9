"""The program as a whole: its overview, its help, its exit statuses."""

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module

import pytest
from command_server import command
from forked_processes import child
from graphs import suiting

from unalike import __version__, random_splits, save_graph
from unalike.cli import demo
from unalike.cli.main import COMMANDS, main
from unalike.data import numba_utils
from unalike.training import checkpoint

every_command = pytest.mark.parametrize("name", COMMANDS)


@pytest.fixture
def stored(tmp_path):
    graph = suiting(nodes=60)
    splits = random_splits(graph.labels, count=2)
    return save_graph(tmp_path / "graph", graph, splits=splits)


def test_the_overview_lists_every_command(capsys):
    for words in (["--help"], ["-h"], ["help"]):
        assert main(words) == 0
        output = capsys.readouterr().out.split("commands:\n")[1].split("\n\n")[0]
        listed = dict(line.split(maxsplit=1) for line in output.splitlines())
        assert listed == COMMANDS


def test_without_a_command_the_overview_is_a_mistake(capsys):
    assert main([]) == 2
    assert "commands:" in capsys.readouterr().out


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"unalike {__version__}\n"


@pytest.mark.parametrize(
    ("word", "meant"), [("trian", "train"), ("measures", "measure"), ("lst", "list")]
)
def test_a_misspelt_command_is_guessed(word, meant, capsys):
    assert main([word]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"error: No command '{word}'. Did you mean '{meant}'?")


@every_command
def test_help_has_an_example_and_tells_of_json(name, capsys):
    assert main([name, "--help"]) == 0
    output = capsys.readouterr().out
    assert f"Example: unalike {name}" in output
    assert "--json" in output


@every_command
def test_the_one_example_of_a_command_begins_with_its_name(name):
    command = import_module(f"unalike.cli.{name}").command
    lines = [line.strip() for line in inspect.getdoc(command).splitlines()]
    (example,) = (line for line in lines if line.startswith("Example:"))
    assert example.split()[1:3] == ["unalike", name]
    assert inspect.signature(command).parameters["json"].default is False


@every_command
def test_unknown_options_are_usage_mistakes(name, capsys):
    assert main([name, "--no-such-option"]) == 2
    assert capsys.readouterr().out == ""


def test_mistakes_of_users_end_in_1_and_one_line(capsys, tmp_path):
    assert main(["measure", str(tmp_path / "nothing")]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ")


def start(*program_and_words):
    return subprocess.Popen(
        program_and_words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_with_frequent_checkpoints(words, streams):
    """What a process does: a command that saves its state after every epoch."""
    for number, stream in enumerate(streams, 1):
        with stream.open("w") as file:
            os.dup2(file.fileno(), number)
    numba_utils.NOTICE.given = True
    checkpoint.Checkpoint.__init__.__defaults__ = (0.0, False)
    sys.exit(main(words))


def test_an_interrupted_training_ends_in_130_and_keeps_its_state(stored, tmp_path):
    state = tmp_path / "state"
    words = ["train", str(stored.folder), "link", "--epochs", "200000"]
    kept = tmp_path / "state.0"
    streams = [tmp_path / "out", tmp_path / "err"]
    words += ["--checkpoint", str(state)]
    process = child(run_with_frequent_checkpoints, words, streams)
    while not kept.exists():
        assert process.is_alive(), streams[1].read_text()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    process.join()
    assert process.exitcode == 130
    out, err = (stream.read_text() for stream in streams)
    assert out == ""
    assert err == "error: interrupted; finished results are saved.\n"
    assert kept.exists()


@pytest.mark.long
def test_json_is_one_document_and_nothing_else(stored):
    process = start(
        sys.executable, "-m", "unalike", "measure", str(stored.folder), "--json"
    )
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert json.loads(out)["num_nodes"] == 60


def test_a_closed_pipe_is_no_mistake():
    with start(command(), "list", "metrics") as process:
        process.stdout.close()
        err = process.stderr.read()
    assert (process.returncode, err) == (0, "")


@pytest.mark.parametrize(
    ("code", "status", "message"),
    [("no space\nleft", 1, "error: no space left\n"), (None, 0, ""), (3, 3, "")],
)
def test_a_command_that_exits_has_that_status(
    code, status, message, monkeypatch, capsys
):
    def command() -> None:
        raise SystemExit(code)

    monkeypatch.setattr(demo, "command", command)
    assert main(["demo"]) == status
    assert capsys.readouterr().err == message
