"""The commands whose output is frozen, shared by the tests and write_files.py."""

import gzip
import hashlib
import io
import json
import sqlite3
import sys
from contextlib import chdir, closing, redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

from unalike import Adjacency, open_graph
from unalike.cli.main import main

FOLDER = Path(__file__).parent
TABLES = FOLDER / "tables"
GRAPHS = FOLDER / "graphs"
MODELS = FOLDER / "models"
CHECKPOINTS = FOLDER / "checkpoints"
EXPORT = FOLDER / "export.jsonl.gz"
RECIPE = FOLDER / "recipe.toml"
STORED_RUNS = FOLDER.parents[1] / "results" / "runs.jsonl.gz"

PEOPLE = GRAPHS / "people"
WORDS = GRAPHS / "words"

IMPORT = (
    *("import", "tables/edges.csv", "--nodes", "tables/people.csv"),
    *("--label", "job", "--splits", "2", "--scale", "none"),
)
"""A stored graph holds the names of its tables, so they are relative."""
NEW_NODES = ("--edges", TABLES / "new-edges.csv", "--nodes", TABLES / "new.csv")

TINY = ("--hidden", "3", "--epochs", "5")
TRAINED = {
    "mlp": (PEOPLE, "mlp", *TINY),
    "mlp-sparse": (WORDS, "mlp", *TINY),
    "link": (PEOPLE, "link", "--epochs", "5"),
    "sgc": (PEOPLE, "sgc", "--epochs", "5"),
    "gcn": (PEOPLE, "gcn", *TINY),
    "gcn-sparse": (WORDS, "gcn", *TINY),
    "gat": (PEOPLE, "gat", *TINY, "--heads", "2"),
    "gcn-jk": (PEOPLE, "gcn-jk", *TINY),
    "gat-jk": (PEOPLE, "gat-jk", *TINY, "--heads", "2"),
    "appnp": (PEOPLE, "appnp", *TINY),
    "h2gcn": (PEOPLE, "h2gcn", *TINY),
    "mixhop": (PEOPLE, "mixhop", *TINY),
    "gpr-gnn": (PEOPLE, "gpr-gnn", *TINY),
    "gcnii": (PEOPLE, "gcnii", *TINY, "--layers", "3"),
    "link-concat": (PEOPLE, "link-concat", *TINY),
    "linkx": (PEOPLE, "linkx", *TINY),
    "linkx-layers": (
        *(PEOPLE, "linkx", *TINY, "--layers", "2", "--edge-layers", "2"),
        *("--feature-layers", "2"),
    ),
    "linkx-sparse": (WORDS, "linkx", *TINY, "--directions", "both"),
    "linkx-calibrated": (PEOPLE, "linkx", *TINY, "--calibrate"),
}
"""Graph and options of `unalike train` behind every file in models/."""
ROW_WISE = ("mlp", "link", "link-concat", "linkx", "linkx-layers", "linkx-calibrated")
"""Models of the graph of people that score nodes the graph did not have."""

VIEWS_MODEL = FOLDER / "views-model" / "mlp.safetensors"
"""VIEWS of PEOPLE with the groups structure and labels, an MLP, one round, three folds,
by commit 95f9671; the file of its predictions has an entry "views mlp"."""

SMALL = ("--hidden", "4", "--epochs", "8", "--splits", "0,1", "--device", "cpu")
RESUMED = {
    "linkx": (PEOPLE, "linkx", *SMALL),
    "linkx-rows": (PEOPLE, "linkx", *SMALL, "rows", "--size", "8"),
    "gcn": (PEOPLE, "gcn", *SMALL),
    "gcn-neighbours": (PEOPLE, "gcn", *SMALL, "neighbours", "--size", "8"),
    "mlp-sparse": (WORDS, "mlp", *SMALL),
}
"""Graph and options of `unalike train` behind every folder in checkpoints/."""

BASE = ("mlp", "--hidden", "4", "--epochs", "4", "--device", "cpu")
TUNED = ("tune", PEOPLE, "--trials", "3", "--splits", "0", "correct-and-smooth", *BASE)
"""The search behind checkpoints/tune, interrupted after two of its settings."""

REAL = ("--device", "cpu", "--epochs", "10")
REAL_SCORES = {
    "linkx": ("texas", "linkx", "--splits", "all", *REAL),
    "linkx rows": ("texas", "linkx", "--splits", "0,1", *REAL, "rows", "--size", "50"),
    "gcn random-parts": ("texas", "gcn", "--splits", "0,1", *REAL, "random-parts"),
    "gcn neighbours": ("texas", "gcn", "--splits", "0,1", *REAL, "neighbours"),
}
"""Options of `unalike train` on real data whose scores are frozen."""

EVERY = ("markdown", "latex", "csv", "json")
SIBLINGS = ("--settings", "any", "--on", "cornell5", "wisconsin87")
RESULTS_TABLES = {
    ("full-batch",): EVERY,
    ("minibatch",): EVERY,
    ("gcn-minibatch",): EVERY,
    ("ablation",): EVERY,
    ("arxiv-coarse-fine",): EVERY,
    ("prior-datasets",): EVERY,
    ("homophilous",): EVERY,
    ("full-batch", "--settings", "any"): ("csv",),
    ("prior-datasets", "--settings", "any"): ("markdown",),
    ("homophilous", "--settings", "any"): ("csv",),
    ("full-batch", "--variant", "appendix"): ("csv",),
    ("full-batch", *SIBLINGS): ("csv",),
    ("minibatch", "--settings", "any", "--on", "cornell5"): ("csv", "markdown"),
    ("prior-datasets", "--explain", "LINKX", "texas"): ("json",),
    ("full-batch", "--explain", "LINKX", "arxiv-year"): ("json",),
}
"""Words after `unalike table` that read results, and the formats to check."""
OUTPUTS = [(words, form) for words, forms in RESULTS_TABLES.items() for form in forms]
WHOLE_STATISTICS = "statistics-geom-gcn"
"""A table of statistics that has a number in every cell."""
STATISTICS = (
    "statistics-proposed",
    "statistics-geom-gcn",
    "statistics-homophilous",
    "two-hop",
)
"""Tables of real graphs; the lines of those that are at hand are frozen."""
# The format `rich` depends on the width of the terminal.
FORMATS = {
    "markdown": ("--format", "markdown"),
    "latex": ("--format", "latex"),
    "csv": ("--format", "csv"),
    "json": ("--json",),
}
WHOLE_TABLES = {
    "prior-datasets.md": (("prior-datasets",), "markdown"),
    "full-batch-siblings.csv": (("full-batch", *SIBLINGS), "csv"),
}
"""Tables whose text is stored, so that a difference can be read."""

DATASETS = (
    "texas",
    "cornell",
    "wisconsin",
    "chameleon",
    "squirrel",
    "actor",
    "cora",
    "citeseer",
    "pubmed",
    "cornell5",
    "wisconsin87",
    "reed98",
    "twitch-de",
    "deezer-europe",
    "chameleon-twin",
)
DONE_SWEEPS = {
    "texas linkx": ("prior-datasets/linkx", "--only", "dataset=texas"),
    "texas gpr-gnn": ("prior-datasets/gpr-gnn", "--only", "dataset=texas"),
    "cora linkx": ("homophilous/linkx", "--only", "dataset=cora", "hidden=64"),
    "actor gcnii": ("prior-datasets/gcnii", "--only", "dataset=actor", "layers=64"),
    "cornell5 minibatch": ("minibatch", "--on", "cornell5"),
    "wisconsin87 link": ("full-batch/link", "--on", "wisconsin87"),
}
"""Words after `unalike sweep --dry-run` for runs that are stored in results/."""


def call(*words):
    """The standard output of a command, run in this folder; it must succeed."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(FOLDER), redirect_stdout(out), redirect_stderr(err):
        status = main([str(word) for word in words])
    assert status == 0, (words, err.getvalue())
    return out.getvalue()


def document(*words):
    """The JSON document that a command prints."""
    return json.loads(call(*words, "--json"))


def frozen(name):
    """A JSON document of this folder."""
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def database(path):
    return f"sqlite:///{path}"


def select(path, query):
    """The rows that an SQL query finds in a database file."""
    with closing(sqlite3.connect(path)) as connection:
        return [list(row) for row in connection.execute(query)]


def lines(path):
    """The rows of an export file, as they are written."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def key_paths(found, path=""):
    """Every key of a JSON document with those above it; items of lists are `[]`."""
    if isinstance(found, dict):
        below = {f"{path}.{key}".lstrip("."): value for key, value in found.items()}
        return set(below).union(
            *(key_paths(one, where) for where, one in below.items())
        )
    if isinstance(found, list):
        return set().union(*(key_paths(one, f"{path}[]") for one in found))
    return set()


def scores(printed):
    """What `train --json` says of each split, without the time it took."""
    return [
        {k: v for k, v in row.items() if k != "seconds"} for row in printed["splits"]
    ]


def studies(printed):
    """What `tune --json` found best in each study."""
    names = ("flow_hops", "scaling", "options", "valid_mean", "test_mean")
    return [{name: study[name] for name in names} for study in printed["studies"]]


def table_words(words, format_name):
    return ("table", *words, *FORMATS[format_name])


def statistics(table):
    """The lines of a table in CSV that have a number of ours."""
    header, *rows = call(*table_words((table,), "csv")).splitlines()
    ours = header.split(",").index("ours")
    return [row for row in rows if row.split(",")[ours]]


def predictions(model, folder, *of):
    """The probabilities that `unalike predict` writes for nodes, with their ids."""
    out = folder / f"{model.stem}-{len(of)}.csv"
    call("predict", model, *of, "--out", out, "--device", "cpu")
    header, *rows = (line.split(",") for line in out.read_text("utf-8").splitlines())
    return {
        "columns": [one.strip('"') for one in header],
        "ids": [row[0].strip('"') for row in rows],
        "classes": [row[1].strip('"') for row in rows],
        "probabilities": [[float(one) for one in row[2:]] for row in rows],
    }


def dense(matrix):
    """Features or an adjacency as lists of rows."""
    whole = matrix.to_dense() if isinstance(matrix, Adjacency) else matrix
    return np.asarray(whole, dtype=np.float64).tolist()


def contents(folder):
    """All that a stored graph holds, as JSON can say it."""
    stored = open_graph(folder)
    graph = stored.graph
    source, target = graph.adjacency.to_scipy().nonzero()
    return {
        "name": stored.name,
        "metric": stored.metric.name,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "num_classes": graph.num_classes,
        "directed": graph.directed,
        "edges": [source.tolist(), target.tolist()],
        "features": dense(graph.features),
        "sparse_features": isinstance(graph.features, Adjacency),
        "labels": graph.labels.tolist(),
        "splits": [one.to_codes(graph.num_nodes).tolist() for one in stored.splits()],
    }


def array_hashes(folder):
    """The sha256 of every array that graph.json lists."""
    about = json.loads((folder / "graph.json").read_text("utf-8"))
    return {name: facts["sha256"] for name, facts in about["arrays"].items()}


def run_keys(path, columns):
    """Columns of all runs of a database file, in the order of the runs' keys."""
    return select(path, f"SELECT {', '.join(columns)} FROM runs ORDER BY key")


def dry_run(words):
    return ("sweep", *words, "--dry-run", "--device", "cpu")


def plan(printed):
    """What a dry run says, without estimates."""
    fields = ("bundle", "shape", "settings", "runs", "left")
    bundles = [[row[field] for field in fields] for row in printed["bundles"]]
    return {"runs": printed["runs"], "left": printed["left"], "bundles": bundles}


def dataset_hashes(folder):
    """The hash that runs of each dataset are stored with, by a sweep of one epoch."""
    results = folder / "hashes.db"
    call(
        *("sweep", RECIPE, "--on", *DATASETS),
        *("--only", "hidden=2", "lr=0.01", "--set", "epochs=1"),
        *("--results", database(results), "--device", "cpu"),
    )
    rows = select(results, "SELECT DISTINCT dataset, dataset_hash FROM runs")
    return dict(sorted(rows))


def documents(empty, folder):
    """Commands with `--json` by name.

    `empty` is a folder without real graphs, `folder` one to write to.
    """
    own = database(folder / "own.db")
    call("results", "import", EXPORT, "--results", own)
    quick = ("--epochs", "2", "--device", "cpu")
    link = (PEOPLE, "link", *quick, "--splits", "0")
    new = ("predict", MODELS / "linkx.safetensors", *NEW_NODES)
    peers = ("--graph", PEOPLE, "--hidden", "4", "--repeats", "1", "--device", "cpu")
    kinds = "datasets twins methods batchings recipes measures metrics"
    return {
        "train": ("train", PEOPLE, "linkx", *quick),
        "train --save --calibrate": (
            *("train", PEOPLE, "linkx", *quick, "--calibrate"),
            *("--save", folder / "model.safetensors"),
        ),
        "train --figures": ("train", *link, "--figures", folder / "figures"),
        "train label-propagation": ("train", PEOPLE, "label-propagation"),
        "train correct-and-smooth": ("train", PEOPLE, "correct-and-smooth", *quick),
        "train rows": ("train", PEOPLE, "linkx", *quick, "rows", "--size", "9"),
        "measure": ("measure", PEOPLE, WORDS),
        "measure --bootstrap": ("measure", PEOPLE, "--bootstrap", "3"),
        **{f"list {kind}": ("list", kind, "--data", empty) for kind in kinds.split()},
        "advise": ("advise", PEOPLE, "--seconds", "4", "--device", "cpu"),
        "predict": new,
        "predict --explain": (*new, "--explain", "--top", "3"),
        "predict --graph": (*new[:2], "--graph", PEOPLE),
        "predict --out": (*new, "--out", folder / "scores.csv"),
        "tune": (
            *(
                "tune",
                PEOPLE,
                "--trials",
                "2",
                "--splits",
                "0",
                "correct-and-smooth",
                "mlp",
            ),
            *("--hidden", "4", *quick),
        ),
        "table statistics-proposed": ("table", "statistics-proposed", "--data", empty),
        "import": (*IMPORT, "--out", folder / "imported"),
        "import --verify": ("import", "--verify", PEOPLE),
        "shard": ("shard", PEOPLE, "--parts", "2", "--out", folder / "shards"),
        "sweep --dry-run": (
            *("sweep", RECIPE, "--on", PEOPLE, "--dry-run"),
            *("--results", own, "--device", "cpu"),
        ),
        "sweep": (
            *("sweep", RECIPE, "--on", PEOPLE, "--only", "hidden=2"),
            *("--results", own, "--device", "cpu"),
        ),
        "results import": ("results", "import", EXPORT, "--results", own),
        "results export": (
            *("results", "export", folder / "out.jsonl.gz"),
            *("--results", own),
        ),
        "bench methods": ("bench", "methods", *peers, "--only", "gcn", "--stacks"),
    }


def table_texts(results, empty):
    """Every table of the runs in a database, by its words and format."""
    more = ("--results", results, "--data", empty)
    return {
        f"{' '.join(words)}: {form}": call(*table_words(words, form), *more)
        for words, form in OUTPUTS
    }


def import_and_tabulate(path, empty, out):
    """Import the stored runs into a new database file and write all their tables."""
    call("results", "import", STORED_RUNS, "--results", database(path))
    out.write_text(json.dumps(table_texts(database(path), empty)), "utf-8")


if __name__ == "__main__":
    import_and_tabulate(*map(Path, sys.argv[1:]))
