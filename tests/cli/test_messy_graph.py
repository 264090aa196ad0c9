"""A messy export (dates, revenues, gaps, lists, odd names) from import to scores."""

import json
from pathlib import Path

import numpy as np
import pytest

from unalike import open_graph
from unalike.cli.main import main

CITIES = ["Rome", "Oslo", "São Paulo"]
KINDS = ["good", "fraud", "[odd] :smile:"]
HEADER = "client [id],kind,revenue,joined,price,rating,city,tags,empty,free text,when"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Tables as exported from a shop: nodes in three classes, edges to the next one."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 3, 300)
    rows = [HEADER]
    for node, kind in enumerate(kinds):
        revenue = f"{10 ** rng.uniform(0, 8):.2f}" if node % 9 else ""
        tags = sorted(rng.choice(20, 3, replace=False).tolist())
        cells = [
            str(node),
            KINDS[kind] if node % 10 else "",
            revenue,
            f"20{10 + node % 14}-0{1 + node % 9}-1{node % 9}",
            ["n/a", f'"{rng.normal():.3f}"'.replace(".", ",")][node % 7 > 0],
            f"{rng.normal() + kind:.3f}" if node % 20 else "n/a",
            CITIES[node % 3],
            f'"{tags}"',
            "",
            f"text {rng.integers(10**6)}",
            f"2020-{1 + node % 12:02}-{1 + node % 28:02}",
        ]
        rows.append(",".join(cells))
    Path("people.csv").write_text("\n".join(rows) + "\n")
    lines = ["when,weight,from [x],to [x],kind"]
    for _ in range(2400):
        source = rng.integers(300)
        target = rng.choice(np.flatnonzero(kinds == (kinds[source] + 1) % 3))
        weight = rng.exponential() + 0.01
        lines.append(f"2020-01-0{rng.integers(1, 10)},{weight:.3f},{source},{target},x")
    Path("edges.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def run_command(capsys, *arguments):
    assert main([*arguments]) == 0
    return capsys.readouterr()


IMPORT = ("import", "edges.csv", "--nodes", "people.csv", "--label", "kind")


def test_the_import_of_a_messy_graph_says_what_it_did(folder, capsys):
    shown = run_command(capsys, *IMPORT, "--out", "g")
    for note in (
        "'from [x]' and 'to [x]' are taken as source and target",
        "not used: when, weight, kind",
        "'revenue' lacks 34 numbers",
        "'rating' lacks 15 numbers",
        "'price' looks like numbers with a decimal comma",
        "'empty' has no value to learn from",
        "--ignore 'free text' leaves it out",
    ):
        assert note in shown.out
    assert shown.out.count("'price'") == 1
    columns = open_graph("g").metadata["feature_columns"]
    kinds = {column["name"]: column["kind"] for column in columns}
    assert kinds["revenue"] == kinds["rating"] == "numeric"
    assert kinds["joined"] == kinds["when"] == "date"
    assert kinds["tags"] == "list"


def test_a_messy_graph_is_learned_as_well_with_its_numbers_as_without(folder, capsys):
    ignored = ("revenue", "joined", "price", "rating", "city", "tags", "empty")
    bare = (*ignored, "free text", "when")
    run_command(capsys, *IMPORT, "--ignore", *bare, "--out", "bare")
    run_command(
        capsys, *IMPORT, "--ignore", "price", "free text", "city", "--out", "full"
    )
    scores = {}
    for graph, method in (("bare", "link"), ("full", "linkx")):
        shown = run_command(
            capsys, "train", graph, method, "--epochs", "40", "--splits", "0", "--json"
        )
        scores[graph] = json.loads(shown.out)["test_mean"]
    assert scores["full"] > scores["bare"] - 3
    assert scores["full"] > 70


def test_classes_of_the_compatibility_matrix_have_their_names(folder, capsys):
    run_command(capsys, *IMPORT, "--ignore", "free text", "price", "--out", "g")
    shown = run_command(capsys, "measure", "g").out
    matrix = shown.partition("compatibility")[2].splitlines()
    assert matrix[1].split(maxsplit=3)[3].split() == [
        "[odd]",
        ":smile:",
        "fraud",
        "good",
    ]
    assert [line.split("  ")[0].strip() for line in matrix[2:]] == sorted(KINDS)


def test_float_ids_in_the_node_table_are_named(folder, capsys):
    text = Path("people.csv").read_text().splitlines()
    rows = [line.replace(",", ".0,", 1) for line in text[1:]]
    Path("people.csv").write_text("\n".join([text[0], *rows]) + "\n")
    assert main([*IMPORT, "--out", "g"]) == 1
    error = capsys.readouterr().err
    assert "the source '" in error
    assert "(column 'from [x]')" in error
    assert ".0': store ids as integers, not as floats.\n" in error
