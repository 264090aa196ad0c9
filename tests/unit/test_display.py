"""What objects show of themselves, in a terminal and in a notebook."""

import json
import math
import pickle
from html.parser import HTMLParser
from io import StringIO

import pytest
import torch
from rich.console import Console

import unalike
from unalike.options import options_of
from unalike.reports.tables import ResultTable, StatisticCell

WICKED = "<script>alert('x')</script>[bold]&"


class Reader(HTMLParser):
    """Collects the tags and the cells of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts = set(), []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)

    def handle_data(self, text):
        self.texts.append(text)


def graph(num_classes=2, directed=True):
    ends = torch.tensor([0, 1, 2]), torch.tensor([1, 2, 2])
    labels = torch.tensor([0, 1, -1])
    return unalike.Graph.from_edges(
        *ends, num_nodes=3, labels=labels, num_classes=num_classes, directed=directed
    )


def result(**changed):
    known = {
        "dataset": WICKED,
        "method": "mine",
        "options": {"depth": 1},
        "metric": "accuracy",
        "split": 0,
        "seed": 0,
        "train": 90.0,
        "valid": 70.0,
        "test": 60.0,
        "best_epoch": 3,
        "seconds": 1.5,
        "peak_memory_mb": 1.0,
        "device": "cpu",
        "versions": {},
        "losses": [0.5] * 3,
        "grades": [0.5] * 3,
    }
    return unalike.Result(**{**known, **changed})


def report():
    return ResultTable(WICKED, {WICKED: {"edges": StatisticCell(1, "1")}}, {})


def solution():
    return unalike.Solution(torch.tensor([[0.0, 1.0], [0.0, 2.0], [3.0, 0.0]]))


SHOWN = {
    "graph": graph,
    "measures": lambda: unalike.measure(graph()),
    "result": result,
    "runs": lambda: unalike.Runs([result()]),
    "report": report,
    "solution": solution,
}


def rich_text(shown):
    console = Console(width=200, file=StringIO())
    console.print(shown)
    return console.file.getvalue()


@pytest.mark.parametrize("name", SHOWN)
def test_terminals_and_notebooks_show_the_same_words(name):
    shown = SHOWN[name]()
    read = Reader(shown._repr_html_())
    text = " ".join(rich_text(shown).split())
    assert read.texts
    for text in read.texts:
        assert " ".join(text.split()) in text


@pytest.mark.parametrize("name", SHOWN)
def test_text_stays_text(name):
    html = SHOWN[name]()._repr_html_()
    tags = {"table", "thead", "tbody", "tr", "th", "td", "p", "b", "i"}
    assert Reader(html).tags <= tags


def test_names_are_escaped_not_dropped():
    assert WICKED in "".join(Reader(result()._repr_html_()).texts)
    assert WICKED in rich_text(unalike.Runs([result()]))


def test_a_graph_tells_its_size_and_its_classes():
    assert repr(graph()) == "Graph(3 nodes, 3 directed edges, 0 features, 2 classes)"
    assert "3 undirected edges" in repr(graph(directed=False))
    read = Reader(graph()._repr_html_()).texts
    assert read[-3:] == ["1", "1", "1"]
    assert "unlabelled" in read


def test_many_classes_are_only_counted():
    assert "unlabelled" not in graph(num_classes=40)._repr_html_()


def test_a_result_tells_how_to_repeat_it():
    options = options_of(unalike.LabelPropagation(hops=2))
    known = result(method="label-propagation", options=options)
    assert "--hops 2" in known.summary().note


def test_a_result_of_an_own_method_has_no_command():
    assert result().summary().note == ""


def test_runs_are_means_over_splits_of_each_setting():
    runs = unalike.Runs(
        result(split=split, test=test, options={"depth": depth, "width": 8})
        for depth, tests in ((1, (60.0, 62.0)), (2, (70.0, 70.0)))
        for split, test in enumerate(tests)
    )
    rows = runs.summary().rows
    assert [(row[2], row[4], row[6]) for row in rows] == [
        ("depth=1", "2", "61.00 ± 1.41"),
        ("depth=2", "2", "70.00 ± 0.00"),
    ]


def test_runs_are_a_list():
    runs = unalike.Runs([result()])
    assert runs == [result()]
    assert isinstance(runs, list)
    assert pickle.global_degrees(pickle.dumps(runs)) == runs


def test_nothing_is_shown_of_no_runs():
    assert unalike.Runs().summary().rows == []


def test_measures_are_a_dictionary():
    found = unalike.measure(graph(), only=["edge_homophily"])
    assert isinstance(found, dict)
    assert json.global_degrees(json.dumps(found))["num_nodes"] == 3
    assert pickle.global_degrees(pickle.dumps(found)) == found


def test_measures_without_meaning_are_a_dash():
    found = unalike.measure(graph(), only=["unbiased_homophily"])
    assert math.isnan(found["unbiased_homophily"])
    assert found.summary().rows[0][1] == "–"


def test_a_solution_counts_its_answers():
    assert solution().summary().rows == [["nodes", "1", "2"]]
