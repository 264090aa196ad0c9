"""Look-ups: what is text of a name that is not there."""

import pytest
from graphs import suiting

from unalike import UserError, random_splits, save_graph
from unalike.cli.main import main
from unalike.errors import lookup
from unalike.wiki.api_client import CrawlPolicy

TABLE = {"linkx": 1, "link": 2}


def test_what_is_there_is_found():
    assert lookup(TABLE, "link", "method") == 2


def test_the_nearest_name_is_suggested():
    with pytest.raises(UserError) as text:
        lookup(TABLE, "linkxx", "method")
    assert str(text.value) == (
        "No method 'linkxx'. Did you mean 'linkx'? Known: linkx, link."
    )


def test_nothing_is_suggested_where_nothing_is_near():
    with pytest.raises(UserError) as text:
        lookup(TABLE, "gcn", "method")
    assert str(text.value) == "No method 'gcn'. Known: linkx, link."


@pytest.mark.parametrize("seed", [-1, 2**32, 2**70])
def test_a_seed_that_no_generator_takes_is_an_error(tmp_path, capsys, seed):
    graph = suiting(nodes=40)
    splits = random_splits(graph.labels, count=1)
    stored = str(save_graph(tmp_path / "graph", graph, splits=splits).folder)
    commands = [
        ["train", stored, "mlp", "--epochs", "1"],
        ["measure", stored, "--bootstrap", "5"],
        ["advise", stored],
        ["tune", stored, "--trials", "1"],
        [
            "sweep",
            "full-batch/mlp",
            "--dry-run",
            "--results",
            f"sqlite:///{tmp_path}/x.db",
        ],
    ]
    for words in commands:
        assert main([*words, f"--seed={seed}"]) == 1
        error = capsys.readouterr().err
        assert f"The seed is {seed}; it must be from 0 to 4294967295." in error


def test_a_crawl_needs_an_attempt():
    with pytest.raises(UserError, match="max_attempts is 0; it must be at least 1"):
        CrawlPolicy(max_attempts=0)
