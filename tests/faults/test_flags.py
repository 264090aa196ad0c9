"""Odd flags and odd names end in a result or in an error of one line."""

from damage import run_command
from graphs import suiting

from unalike import random_splits, save_graph

VALUES = ["nan", "inf", "-1", "0", "1e999", "9" * 30, "", "x", "[/x]", "-"]
FLAGS = {
    "train": ["--lr", "--hidden", "--layers", "--dropout", "--seed", "--splits"],
    "measure": ["--only", "--seed"],
    "shard": ["--parts"],
    "figure": ["--out"],
    "table": ["--results", "--settings"],
    "results": ["--results"],
}
WORDS = {"train": ["linkx", "--epochs", "1"], "shard": ["--out", "shards"]}
SOURCE = {"train": "graph", "measure": "graph", "shard": "graph"}
FIRST = {"figure": ["degrees", "graph"], "table": ["full-batch"]}
FIRST["results"] = ["export", "out.jsonl"]


def test_odd_flags_end_in_a_result_or_an_error_of_one_line(
    tmp_path, some, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    graph = suiting(nodes=20)
    splits = random_splits(graph.labels, count=1)
    save_graph(tmp_path / "graph", graph, splits=splits)
    for rng in some:
        command = rng.choice(list(FLAGS))
        first = FIRST.get(command) or [SOURCE[command]]
        flag = rng.choice(FLAGS[command])
        words = [command, *first, *WORDS.get(command, []), flag, rng.choice(VALUES)]
        run_command(words, capsys)


def test_a_graph_may_have_a_name_like_markup(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    graph = suiting(nodes=20)
    name = "a[/x]b[bold]"
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    save_graph(tmp_path / name, graph, splits=random_splits(graph.labels, count=1))
    for words in (
        ["train", f"./{name}", "link", "--epochs", "2"],
        ["measure", f"./{name}"],
    ):
        status, out = run_command(words, capsys)
        assert status == 0
        assert "b[bold]" in out
