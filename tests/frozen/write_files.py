"""Write the files of this folder anew with the installed version.

The files in the repository were written by commit c1b98d6, with the version of this
program in commit 44a4533. The tests compare what later versions read and compute with
them, so they are not written anew when code changes. This version writes the files of
the present formats:

    UNALIKE_DATA=<real graphs> OMP_NUM_THREADS=1 python tests/frozen/write_files.py

Files that exist already are replaced. The commands are those of commands.py: `unalike
import` wrote graphs/people, `save_graph` graphs/words, `unalike train --save` models/,
interrupted `unalike train --checkpoint` and `unalike tune --checkpoint` checkpoints/,
`unalike sweep` and `unalike results export` export.jsonl.gz.
"""

import json
import random
import shutil
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import torch
from commands import (
    CHECKPOINTS,
    DONE_SWEEPS,
    EXPORT,
    FOLDER,
    FORMATS,
    GRAPHS,
    IMPORT,
    MODELS,
    NEW_NODES,
    PEOPLE,
    REAL_SCORES,
    RECIPE,
    RESUMED,
    ROW_WISE,
    STATISTICS,
    STORED_RUNS,
    TABLES,
    TRAINED,
    TUNED,
    WHOLE_STATISTICS,
    WHOLE_TABLES,
    WORDS,
    array_hashes,
    call,
    contents,
    database,
    dataset_hashes,
    document,
    documents,
    dry_run,
    key_paths,
    plan,
    predictions,
    run_keys,
    scores,
    sha256,
    statistics,
    studies,
    table_texts,
    table_words,
)

from unalike import (
    MLP,
    Adjacency,
    CorrectAndSmooth,
    Graph,
    RunOptions,
    Training,
    open_graph,
    random_splits,
    save_graph,
    tune,
)
from unalike.cli.main import main
from unalike.training.checkpoint import Checkpoint


def write(name, found):
    text = json.dumps(found, indent=1, ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(text + "\n", "utf-8")


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def write_tables():
    """CSV files of people, whose edges join buyers to sellers."""
    draw = random.Random(1)
    jobs = [draw.choice(["buyer", "seller", "broker"]) for _ in range(48)]
    ages = {"buyer": 40, "seller": 30, "broker": 50}
    rows = [
        f"p{i},{job if i % 12 else ''},{draw.gauss(ages[job], 5):.1f},"
        f"{draw.choice(['Rome', 'Oslo', 'Köln'])},{draw.choice(['true', 'false'])},"
        f"20{draw.randrange(10, 25)}-0{draw.randrange(1, 10)}-11"
        for i, job in enumerate(jobs)
    ]
    pairs = [draw.sample(range(48), 2) for _ in range(260)]
    edges = [f"p{a},p{b}" for a, b in pairs if jobs[a] != jobs[b]]
    new = ["ann,45,Rome,true,2014-03-11", "bob,22,Paris,false,2020-07-01"]
    links = ["ann,p1", "ann,p2", "p3,bob", "ann,zed", "ann,bob", "p1,p2", "p7,bob"]
    for name, header, body in (
        ("people", "id,job,age,city,member,since", rows),
        ("edges", "source,target", edges),
        ("new", "id,age,city,member,since", new),
        ("new-edges", "source,target", links),
    ):
        text = "\n".join([header, *body]) + "\n"
        (TABLES / f"{name}.csv").write_text(text, "utf-8")


def words_graph():
    """A directed graph with sparse features."""
    draw = torch.Generator().manual_seed(3)
    labels = torch.randint(2, (40,), generator=draw)
    source, target = torch.randint(40, (2, 200), generator=draw)
    dense = torch.randn(40, 6, generator=draw) + 2.0 * torch.eye(6)[labels]
    row, column = (dense > 0.8).nonzero().T
    features = Adjacency.from_edges(
        row, column, shape=(40, 6), values=dense[row, column]
    )
    labels[::10] = -1
    return Graph.from_edges(
        source,
        target,
        num_nodes=40,
        features=features,
        labels=labels,
        directed=True,
    )


def write_graphs():
    fresh(GRAPHS)
    call(*IMPORT, "--out", PEOPLE)
    graph = words_graph()
    save_graph(WORDS, graph, splits=random_splits(graph.labels, count=2))
    write(
        "graphs",
        {
            folder.name: {
                "arrays": array_hashes(folder),
                "measures": document("measure", folder),
                **contents(folder),
            }
            for folder in (PEOPLE, WORDS)
        },
    )


def write_models(folder):
    fresh(MODELS)
    expected = {}
    for name, (graph, *options) in TRAINED.items():
        model = MODELS / f"{name}.safetensors"
        call("train", graph, *options, "--device", "cpu", "--no-refit", "--save", model)
        expected[name] = {"known": predictions(model, folder, "--graph", graph)}
        if name in ROW_WISE:
            expected[name]["new"] = predictions(model, folder, *NEW_NODES)
    write("predictions", expected)


class Clock:
    """A clock that gains 7 s at each look: training believes it is time to save."""

    def __init__(self):
        self.looks, self.real = 0, time.perf_counter

    def __call__(self):
        self.looks += 1
        return self.real() + 7 * self.looks


def interrupted(save):
    """Saving as usual, then the interruption that Ctrl-C would be."""

    def saved(self, state):
        save(self, state)
        raise KeyboardInterrupt

    return saved


def write_checkpoints():
    fresh(CHECKPOINTS)
    expected = {}
    for name, words in RESUMED.items():
        expected[name] = scores(document("train", *words))
        state = CHECKPOINTS / name / "state"
        state.parent.mkdir()
        with (
            mock.patch.object(Checkpoint, "save", interrupted(Checkpoint.save)),
            mock.patch("time.perf_counter", Clock()),
        ):
            status = main([*map(str, ("train", *words, "--checkpoint", state))])
        assert status == 130, status
    write("resumed", expected)


class Stop:
    """Progress that interrupts a search when two trials are done."""

    def stage(self, what, total, unit):
        self.left = 2 if unit == "trials" else None

    def advance(self, amount, note=""):
        if self.left is not None:
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt


def write_tune_checkpoint():
    write("tuned", studies(document(*TUNED)))
    base = MLP(hidden=4, training=Training(epochs=4))
    options = RunOptions(checkpoint=CHECKPOINTS / "tune", progress=Stop())
    with suppress(KeyboardInterrupt):
        method = CorrectAndSmooth(base=base)
        tune(open_graph(PEOPLE), method, trials=3, splits=[0], options=options)
    assert (CHECKPOINTS / "tune" / "judged.jsonl").exists()


def write_export(folder):
    results = database(folder / "export.db")
    call("sweep", RECIPE, "--on", PEOPLE, "--results", results, "--device", "cpu")
    EXPORT.unlink(missing_ok=True)
    call("results", "export", EXPORT, "--results", results)
    columns = ["key", "setting", "shape", "dataset_hash", "split"]
    rows = run_keys(folder / "export.db", columns)
    write("export_keys", {"columns": columns, "rows": rows})


def write_results(folder, empty):
    path = folder / "results.db"
    call("results", "import", STORED_RUNS, "--results", database(path))
    names = "key setting shape dataset dataset_hash method batching split seed"
    rows = run_keys(path, names.split())
    write(
        "keys",
        {
            "columns": names.split(),
            "runs": len(rows),
            "sha256": sha256(json.dumps(rows)),
            "sample": rows[::1500] + first_of_each(rows),
        },
    )
    texts = table_texts(database(path), empty)
    write("tables", {name: sha256(text) for name, text in texts.items()})
    for name, (words, form) in WHOLE_TABLES.items():
        (FOLDER / name).write_text(texts[f"{' '.join(words)}: {form}"], "utf-8")
    write(
        "done",
        {
            name: plan(document(*dry_run(words), "--results", database(path)))
            for name, words in DONE_SWEEPS.items()
        },
    )
    write(
        "json_keys",
        {
            name: sorted(key_paths(document(*words)))
            for name, words in documents(empty, folder).items()
        },
    )


def first_of_each(rows):
    """A row for each method with each batching."""
    found = {(row[5], row[6]): row for row in reversed(rows)}
    return [found[name] for name in sorted(found)]


def write_real(folder):
    write("statistics", {table: statistics(table) for table in STATISTICS})
    write(
        "whole_statistics",
        {
            form: sha256(call(*table_words((WHOLE_STATISTICS,), form)))
            for form in FORMATS
        },
    )
    write(
        "real_scores",
        {
            name: scores(document("train", *words))
            for name, words in REAL_SCORES.items()
        },
    )
    write("dataset_hashes", dataset_hashes(folder))


def write_all():
    torch.set_num_threads(1)
    with TemporaryDirectory() as one, TemporaryDirectory() as empty:
        folder = Path(one)
        write_tables()
        write_graphs()
        write_models(folder)
        write_checkpoints()
        write_tune_checkpoint()
        write_export(folder)
        write_results(folder, empty)
        write_real(folder)


if __name__ == "__main__":
    write_all()
