"""What a run said of its test nodes: counted, kept, carried and summed."""

import gzip
import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sql
import torch
from graphs import suiting
from result_rows import row_of
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix

import unalike
from unalike import UserError, random_splits, save_graph
from unalike.data.calibration import BINS, Reliability, merge_reliability
from unalike.experiments.config import DatasetOptions, DatasetWithOptions
from unalike.experiments.database import ResultsDatabase, result_from_row
from unalike.experiments.database_connection import (
    ANSWERS,
    CURVES,
    FAILURES,
    LEASES,
    RUNS,
)
from unalike.experiments.evaluation import (
    MAX_CLASSES,
    PredictionSummary,
    merge_summaries,
)
from unalike.experiments.export import FORMAT, export_runs, import_runs
from unalike.reports.site.predictions import predictions_by_config

CARRIED = Path(__file__).parents[3] / "results" / "runs.jsonl.gz"
SOME = {
    "confusion": [[2, 1], [0, 3]],
    "reliability": {"counts": [0, 6], "confidence": [0.0, 0.7], "accuracy": [0.0, 0.5]},
    "classes": ["no", "yes"],
}


def examined(nodes=400, classes=4, seed=0):
    """Scores that are mostly right, and labels."""
    chance = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (nodes,), generator=chance)
    noise = 2 * torch.randn(nodes, classes, generator=chance)
    return noise + 2 * torch.eye(classes)[labels], labels


def opened(folder, name="results"):
    return ResultsDatabase.open(f"sqlite:///{folder / name}.db")


def test_the_matrix_is_that_of_scikit_learn():
    scores, labels = examined()
    expected = confusion_matrix(labels, scores.argmax(1), labels=range(4))
    assert PredictionSummary.from_scores(scores, labels).confusion == expected.tolist()


def test_the_bins_are_those_of_scikit_learn():
    scores, labels = examined()
    shares, answer = scores.softmax(1).max(1)
    right, sure = calibration_curve(answer == labels, shares, n_bins=BINS)
    found = PredictionSummary.from_scores(scores, labels).reliability
    there = np.array(found.counts) > 0
    np.testing.assert_allclose(np.array(found.accuracy)[there], right, atol=1e-6)
    np.testing.assert_allclose(np.array(found.confidence)[there], sure, atol=1e-6)
    gaps = np.abs(right - sure) * np.array(found.counts)[there]
    assert found.error == pytest.approx(gaps.sum() / len(labels), abs=1e-6)


def test_splits_together_are_as_one():
    exams = [examined(seed=seed, nodes=100 + seed) for seed in range(3)]
    found = merge_summaries([PredictionSummary.from_scores(*one) for one in exams])
    scores, labels = (torch.cat(parts) for parts in zip(*exams, strict=True))
    whole = PredictionSummary.from_scores(scores, labels)
    assert found.confusion == whole.confusion
    assert found.reliability.counts == whole.reliability.counts
    assert found.reliability.error == pytest.approx(whole.reliability.error, abs=1e-5)


def test_bins_without_nodes_stay_at_nothing():
    empty = Reliability([0, 1], [0.0, 1.0], [0.0, 1.0])
    assert merge_reliability([empty, empty]) == Reliability(
        [0, 2], [0.0, 1.0], [0.0, 1.0]
    )


def test_what_means_nothing_is_left_out():
    scores, labels = examined(classes=MAX_CLASSES + 1)
    found = PredictionSummary.from_scores(
        scores, labels, classes=["a"] * (MAX_CLASSES + 1)
    )
    assert (found.confusion, found.classes) == (None, None)
    assert found.reliability is not None
    scores[0, 0] = torch.nan
    assert PredictionSummary.from_scores(scores, labels).reliability is None
    assert (
        merge_summaries(
            [found, PredictionSummary.from_scores(scores, labels)]
        ).reliability
        is None
    )


@pytest.mark.parametrize(
    ("method", "sure"),
    [
        (unalike.LINK(), True),
        (unalike.LabelPropagation(), False),
    ],
)
@pytest.mark.long
def test_a_run_keeps_its_answers(tmp_path, method, sure):
    graph = suiting(nodes=90, classes=3)
    splits = random_splits(graph.labels, count=2)
    names = {"class_names": ["low", "middle", "high"]}
    stored = save_graph(tmp_path / "graph", graph, splits=splits, about=names)
    for output in unalike.run(
        DatasetWithOptions(stored, DatasetOptions(metric="accuracy")), method
    ):
        found = output.answers
        assert sum(map(sum, found.confusion)) == len(splits[output.split].test)
        right = sum(found.confusion[place][place] for place in range(3))
        assert 100 * right / len(splits[0].test) == pytest.approx(output.test)
        assert found.classes == ["low", "middle", "high"]
        assert (found.reliability is not None) == sure


def test_an_older_database_is_opened_and_filled_on(tmp_path):
    engine = sql.create_engine(f"sqlite:///{tmp_path / 'results.db'}")
    older = [RUNS, CURVES, FAILURES, LEASES]
    RUNS.metadata.create_all(engine, tables=older)
    row = row_of()
    with engine.begin() as connection:
        names = {column.name for column in RUNS.c}
        values = {name: value for name, value in row.items() if name in names}
        connection.execute(sql.insert(RUNS), [values])
    assert not sql.inspect(engine).has_table(ANSWERS.name)
    engine.dispose()
    with opened(tmp_path) as results:
        results.store([{**row_of(1), "answers": SOME}])
        old, new = results.runs(answers=True)
    assert (old["answers"], new["answers"]) == (None, SOME)
    assert result_from_row(old).answers is None
    assert result_from_row(new).answers == PredictionSummary.from_json(SOME)


def test_answers_are_carried_with_their_runs(tmp_path):
    file = tmp_path / "some.jsonl.gz"
    with opened(tmp_path) as results, opened(tmp_path, "other") as other:
        results.store([row_of(0), {**row_of(1), "answers": SOME}])
        export_runs(results, file, curves=False)
        assert import_runs(other, file) == (2, 2)
        assert [row["answers"] for row in other.runs(answers=True)] == [None, SOME]
    with gzip.open(file, "rt") as lines:
        first, second = map(json.loads, lines.readlines()[1:])
    assert "answers" not in first
    assert second["answers"] == SOME


def test_results_that_were_carried_before_are_read(tmp_path):
    file = tmp_path / "head.jsonl.gz"
    with gzip.open(CARRIED, "rt") as whole:
        title, *runs = (json.loads(line) for line in islice(whole, 21))
    for run in runs:
        run.pop("answers", None)  # which nobody kept then
    with gzip.open(file, "wt") as head:
        head.writelines(f"{json.dumps(line)}\n" for line in [title, *runs])
    with opened(tmp_path) as results:
        assert import_runs(results, file) == (20, 20)
        assert {row["answers"] for row in results.runs(answers=True)} == {None}


@pytest.mark.parametrize(
    "broken",
    [
        7,
        {},
        {**SOME, "confusion": [[1, 2], [3]]},
        {**SOME, "confusion": [["1", 2], [3, 4]]},
        {**SOME, "classes": ["one"]},
        {**SOME, "classes": [1, 2]},
        {**SOME, "reliability": {"counts": [1]}},
        {**SOME, "reliability": {**SOME["reliability"], "counts": [1]}},
    ],
)
def test_answers_that_are_none_are_refused(tmp_path, broken):
    with opened(tmp_path) as results:
        results.store([{**row_of(), "answers": SOME}])
        export_runs(results, tmp_path / "whole.gz")
    with gzip.open(tmp_path / "whole.gz", "rt") as file:
        output = json.loads(file.readlines()[1])
    with gzip.open(tmp_path / "broken.gz", "wt") as file:
        file.write(
            f"{json.dumps(FORMAT)}\n{json.dumps({**output, 'answers': broken})}\n"
        )
    with opened(tmp_path, "other") as other:
        with pytest.raises(
            UserError,
            match=r"broken\.gz has 1 lines that are no runs: line 2 \(.*answers",
        ):
            import_runs(other, tmp_path / "broken.gz")
        assert not list(other.runs())


def test_the_page_gets_the_sum_over_splits():
    rows = [{**row_of(split), "answers": SOME} for split in range(2)]
    (found,) = predictions_by_config([*rows, row_of(2)]).values()
    assert found == {
        "splits": 2,
        "classes": ["no", "yes"],
        "confusion": [[4, 2], [0, 6]],
        "reliability": {
            "counts": [0, 12],
            "confidence": [0.0, 0.7],
            "accuracy": [0.0, 0.5],
            "error": 0.2,
        },
    }
