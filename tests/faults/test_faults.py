"""Broken input of every kind: an error of one line, or the right result.

A few hundred seeded cases of each family run always; `make fault-test` runs thousands.
"""

import contextlib
import csv
import io
import random
import shutil

import numpy as np
import pyarrow as pa
import pytest
import torch
from graphs import suiting, tasks_of

import unalike
from unalike import UserError, import_graph, open_graph, random_splits, save_graph
from unalike.cli.main import main
from unalike.methods.base import train_stacks
from unalike.training.checkpoint import Checkpoint

FEW, MANY = 200, 4_000
AMOUNTS = [FEW, pytest.param(MANY, marks=pytest.mark.slow)]


@pytest.fixture(params=AMOUNTS, ids=["few", "many"])
def cases(request):
    """Generators of random numbers, one for each case."""
    return [random.Random(seed) for seed in range(request.param)]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def damage(content: bytes, rng: random.Random) -> bytes:
    """The bytes with a flipped bit, a hole, noise, or cut."""
    data, place = bytearray(content), rng.randrange(len(content))
    kind = rng.choice(["bit", "byte", "cut", "zeros", "noise"])
    if kind == "bit":
        data[place] ^= 1 << rng.randrange(8)
    elif kind == "byte":
        data[place] = rng.randrange(256)
    elif kind == "cut":
        del data[place:]
    else:
        length = min(16, len(data) - place)
        data[place : place + length] = (
            bytes(length) if kind == "zeros" else rng.randbytes(length)
        )
    return bytes(data)


FIELDS = ["a", "b", "7", "-3", '"q"', '"x,y"', '"l\nm"']
FIELDS += ['a"b', '"', "", " c ", "\u00a0d"]


def edge_text(rng: random.Random) -> str:
    """Lines of an edge list, most of them valid."""
    ends = rng.choice(["\n", "\r\n", "\r"])
    odd = FIELDS if rng.random() < 0.5 else FIELDS[:5]
    rows = [[rng.choice(odd) for _ in range(2)] for _ in range(rng.randrange(1, 12))]
    if rng.random() < 0.2:
        rows.append(["alone"])
    start = rng.choice(["", "\ufeff", "\n"])
    last = rng.choice(["", ends])
    return start + ends.join(["source,target", *map(",".join, rows)]) + last


def edges_by_csv(text: str) -> set[frozenset[str]] | None:
    """The edges as Python's csv reads them; None where a row is invalid."""
    mark = "last line"
    lines = io.StringIO(f"{text.removeprefix(chr(0xFEFF))}\n{mark}", newline="")
    rows = [row for row in csv.reader(lines) if row]
    if rows.pop() != [mark]:
        return None
    edges = set()
    for row in rows[1:]:
        values = [value.strip() for value in row]
        if len(values) != 2 or not all(values):
            return None
        edges.add(frozenset(values))
    return edges or None


def stored_edges(folder):
    stored = open_graph(folder)
    names = [str(name) for name in stored.names.to_pylist()]
    adjacency = stored.graph.adjacency
    pairs = zip(adjacency.row_indices.tolist(), adjacency.indices.tolist(), strict=True)
    return {frozenset((names[u], names[v])) for u, v in pairs}


def test_an_imported_file_has_the_edges_that_another_reader_finds(tmp_path, cases):
    for number, rng in enumerate(cases):
        text, out = edge_text(rng), tmp_path / f"graph{number}"
        (tmp_path / "e.csv").write_text(text, "utf-8", newline="")
        expected = edges_by_csv(text)
        try:
            import_graph([tmp_path / "e.csv"], out=out)
            found = stored_edges(out)
        except UserError:
            found = None
        assert found == expected, repr(text)
        shutil.rmtree(out, ignore_errors=True)


def contents(folder):
    """Everything that a stored graph gives."""
    stored = open_graph(folder)
    graph = stored.graph
    return (
        graph.adjacency.indptr.tolist(),
        graph.adjacency.T.indices.tolist(),
        graph.features.to_dense().tolist(),
        graph.labels.tolist(),
        [split.train.tolist() for split in stored.splits()],
        stored.names.to_pylist(),
        {name: stored.metadata[name] for name in ("num_classes", "directed", "metric")},
    )


def test_a_damaged_graph_is_refused_or_the_same(tmp_path, cases):
    graph, folder = suiting(nodes=20, classes=3), tmp_path / "graph"
    splits = random_splits(graph.labels, count=2)
    names = pa.array([f"n{i}" for i in range(20)])
    save_graph(folder, graph, splits=splits, names=names)
    expected, files = contents(folder), sorted(folder.iterdir())
    for rng in cases:
        file = rng.choice(files)
        content = file.read_bytes()
        file.write_bytes(damage(content, rng))
        with contextlib.suppress(UserError):
            assert contents(folder) == expected, file
        with contextlib.suppress(UserError):
            unalike.verify_graph(folder)
        file.write_bytes(content)


def test_a_damaged_model_is_refused_or_the_same(tmp_path, cases):
    graph = suiting(nodes=20)
    splits = random_splits(graph.labels, count=1)
    stored = save_graph(tmp_path / "graph", graph, splits=splits)
    path = tmp_path / "model.safetensors"
    method = unalike.LINK(training=unalike.Training(epochs=2))
    options = unalike.RunOptions(model=path)
    unalike.run(stored, method, options=options)
    whole = path.read_bytes()
    header_end = 8 + int.from_bytes(whole[:8], "little")
    for rng in cases:
        # Weights have no checksum; the header decides what is read.
        path.write_bytes(damage(whole[:header_end], rng) + whole[header_end:])
        with contextlib.suppress(UserError):
            unalike.load_model(path)


def test_a_damaged_checkpoint_is_refused_or_resumed_to_the_same_scores(tmp_path, cases):
    method = unalike.LINK(training=unalike.Training(epochs=2))
    tasks = tasks_of(suiting(nodes=20), 1)
    keep = Checkpoint(tmp_path / "state", "runs", every=0.0, lasting=True)
    (expected,) = train_stacks([method], tasks, checkpoint=keep)
    files = [path for path in (tmp_path / "state.0").rglob("*") if path.is_file()]
    whole = {path: path.read_bytes() for path in files}
    for rng in cases[: max(100, len(cases) // 4)]:
        file = rng.choice(files)
        file.write_bytes(damage(whole[file], rng))
        with contextlib.suppress(UserError):
            (found,) = train_stacks([method], tasks, checkpoint=keep)
            assert torch.equal(found.scores, expected.scores), file
        shutil.rmtree(tmp_path / "state.0")
        for path, content in whole.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


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
    tmp_path, cases, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    graph = suiting(nodes=20)
    splits = random_splits(graph.labels, count=1)
    save_graph(tmp_path / "graph", graph, splits=splits)
    for rng in cases[: max(100, len(cases) // 4)]:
        command = rng.choice(list(FLAGS))
        first = FIRST.get(command) or [SOURCE[command]]
        flag = rng.choice(FLAGS[command])
        words = [command, *first, *WORDS.get(command, []), flag, rng.choice(VALUES)]
        status = main(words)
        err = capsys.readouterr().err
        assert status in (0, 1, 2), words
        assert status != 1 or err.count("\n") <= 2, (words, err)
        assert "Traceback" not in err, words


def test_numbers_of_the_cases_are_the_same_every_time():
    data = np.arange(64, dtype=np.uint8).tobytes()
    assert damage(data, random.Random(3)) == damage(data, random.Random(3))
