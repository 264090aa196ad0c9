"""Tables of README and docs, made from stored runs, bench files and advice."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from number_sources import Sources, Value, advice_outcomes, read_json

from unalike.bench.cost_model import MAPPED, Cluster, MemoryModel, TimeModel, Workload
from unalike.datasets.registry import DATASETS


def markdown_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], left: int
) -> str:
    """A Markdown table whose first columns are aligned left."""
    rule = [":--"] * left + ["--:"] * (len(heads) - left)
    return "".join(f"| {' | '.join(line)} |\n" for line in (heads, rule, *rows))


def score(value: Value, digits: int = 1) -> str:
    """A mean with its deviation."""
    return " ± ".join(rounded(one, digits) for one in value if one is not None)


def rounded(number: float, digits: int) -> str:
    """A number with some decimals; the paper's two decimals are rounded half up."""
    unit = Decimal(1).scaleb(-digits)
    return f"{Decimal(repr(number)).quantize(unit, ROUND_HALF_UP) + 0:,}"


def fraction(number: float) -> str:
    """Two decimals without a leading zero."""
    return rounded(number, 2).removeprefix("0")


def bold_best(scores: dict[str, float | None]) -> list[str]:
    """Scores with one decimal, the best in bold; empty where there is none."""
    texts = {name: "" if s is None else rounded(s, 1) for name, s in scores.items()}
    best = max((s for s in scores.values() if s is not None), default=None)
    shown = rounded(best, 1) if best is not None else None
    return [f"**{t}**" if t and t == shown else t for t in texts.values()]


PRIOR = ("texas", "wisconsin", "cornell", "actor", "squirrel", "chameleon")
HOMOPHILOUS = ("citeseer", "pubmed", "cora")


def linkx_grids(sources: Sources) -> str:
    """LINKX on the nine small datasets, ours and the paper's."""
    recipes = dict.fromkeys(PRIOR, "prior-datasets/linkx")
    recipes |= dict.fromkeys(HOMOPHILOUS, "homophilous/linkx")
    rows = [
        [
            name,
            *(score(look_up(recipe, dataset)) for dataset, recipe in recipes.items()),
        ]
        for name, look_up in (("unalike", sources.ours), ("paper", sources.printed))
    ]
    return markdown_table(["", *recipes], rows, 1)


LINKX_STARTS = {
    "`--hidden 64`": ("hidden=64", "feature_layers=1", "lr=0.01"),
    "`--hidden 128 --feature-layers 2 --lr 0.002`": (
        *("hidden=128", "feature_layers=2", "lr=0.002"),
    ),
}
"""Settings to start with, by their words on the command line."""


def linkx_starts(sources: Sources) -> str:
    """LINKX by two settings with one layer elsewhere, beside the best of its grid."""
    graphs = (*PRIOR, *HOMOPHILOUS)
    shared = ("layers=1", "edge_layers=1", "dropout=0.5")
    rows = [
        [
            words,
            *(
                score(sources.setting("linkx", dataset, *shared, *setting))
                for dataset in graphs
            ),
        ]
        for words, setting in LINKX_STARTS.items()
    ]
    best = [
        score(
            sources.ours(
                f"{'prior-datasets' if d in PRIOR else 'homophilous'}/linkx", d
            )
        )
        for d in graphs
    ]
    rows.append(["the best of 384 settings, by validation", *best])
    return markdown_table(["", *graphs], rows, 1)


LARGE = (
    *("wisconsin87", "cornell5", "penn94", "pokec", "arxiv-year", "snap-patents"),
    *("genius", "twitch-gamers"),
)
LARGE_METHODS = ("mlp", "link", "gcn", "linkx")


def large_graphs(sources: Sources) -> str:
    """MLP, LINK, GCN and LINKX on large graphs, and on three homophilous ones."""
    rows = []
    for dataset in LARGE:
        ours = dataset in ("wisconsin87", "cornell5")
        look_up = sources.ours if ours else sources.printed
        found = {m: look_up(f"full-batch/{m}", dataset)[0] for m in LARGE_METHODS}
        kind = "ours" if ours else "published"
        kind += ", ROC-AUC" * (dataset == "genius")
        rows.append([f"{dataset}, {kind}", *measures(dataset), *bold_best(found)])
    for dataset in reversed(HOMOPHILOUS):
        found = {
            m: sources.ours(f"homophilous/{m}", dataset)[0]
            if m in ("gcn", "linkx")
            else None
            for m in LARGE_METHODS
        }
        rows.append([f"{dataset}, ours", *measures(dataset), *bold_best(found)])
    heads = ["graph", "nodes", "ĥ", "informativeness", "monophily"]
    return markdown_table([*heads, "MLP", "LINK", "GCN", "LINKX"], rows, 1)


def small_graphs(sources: Sources) -> str:
    """GPR-GNN, H2GCN and LINKX on the six older graphs."""
    rows = []
    for dataset in ("chameleon", "squirrel", "actor", "texas", "wisconsin", "cornell"):
        h2gcn = [sources.printed(f"prior-datasets/h2gcn-{n}", dataset) for n in (1, 2)]
        found = [
            sources.ours("prior-datasets/gpr-gnn", dataset),
            max(h2gcn, key=lambda one: (one[0], -(one[1] or 0))),
            sources.ours("prior-datasets/linkx", dataset),
        ]
        best = max(found)
        cells = [f"**{score(s)}**" if s == best else score(s) for s in found]
        rows.append([dataset, *measures(dataset), *cells])
    heads = ["graph", "nodes", "ĥ", "informativeness", "monophily"]
    methods = ["GPR-GNN, ours", "H2GCN, quoted", "LINKX, ours"]
    return markdown_table([*heads, *methods], rows, 1)


def measures(dataset: str) -> list[str]:
    """Nodes, class homophily, label informativeness and monophily of a dataset."""
    if found := read_json("measures").get(dataset):
        names = ("class_homophily", "label_informativeness", "monophily")
        return [f"{found['num_nodes']:,}", *(fraction(found[name]) for name in names)]
    published = DATASETS[dataset].published
    return [f"{published.num_nodes:,}", fraction(published.class_homophily), "", ""]


def three_digits(number: float | None) -> str:
    """A measurement with three digits, or all digits before the point."""
    if number is None:
        return ""
    return f"{number:,.0f}" if number >= 1000 else f"{number:#.3g}".removesuffix(".")


def code(what: str) -> str:
    return what.replace("edge_index", "`edge_index`")


# Tables of bench files. Each ends with the command, the date and the commit.


Row = Mapping[str, Any]
Columns = Mapping[str, Callable[[Row], str]]
"""Headings, and the text of a row below each."""


def bench_table(file: str, rows: Iterable[Row], columns: Columns, left: int) -> str:
    """A table of a bench file, and the line that says where it comes from."""
    cells = [[text(row) for text in columns.values()] for row in rows]
    return markdown_table([*columns], cells, left) + source_line(file)


def source_line(file: str) -> str:
    """Command, date, commit and device of a bench file, as a sentence."""
    found = read_json(f"bench/{file}")
    command = found["command"].replace(" --json", "")
    day = date.fromisoformat(found["date"])
    place = f"commit {found['commit'][:7]}, {found['device']}"
    older = "An older measurement: " if "taken_from" in found else ""
    note = f" {found['note']}" if "note" in found else ""
    return f"\n*{older}`{command}`, {day.day} {day:%B %Y}, {place}.{note}*\n"


def stored(file: str) -> Callable[[Sources], str]:
    """A table that a bench file has as it is: heads and rows."""

    def table(_: Sources) -> str:
        found = read_json(f"bench/{file}")
        rows = [[stored_cell(cell) for cell in row] for row in found["rows"]]
        return markdown_table(found["heads"], rows, found["left"]) + source_line(file)

    return table


def stored_cell(cell: str | float | list[float] | None) -> str:
    """A text, a number with the digits it is stored with, or a mean ± deviation."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    numbers = cell if isinstance(cell, list) else [cell]
    return " ± ".join(f"{Decimal(repr(number)):,}" for number in numbers)


def linkx_epochs(_: Sources) -> str:
    """An epoch of LINKX on a GPU."""
    columns: Columns = {
        "hidden": lambda row: str(row["hidden"]),
        "an epoch of LINKX": lambda row: code(row["what"]),
        "ms": lambda row: three_digits(row["ms"]),
        "times as fast as PyG on CSR": lambda row: f"{row['times_fastest_peer']:.1f}",
        "GiB": lambda row: three_digits(row["gib"]),
        "sparse ms": lambda row: three_digits(row.get("sparse_ms")),
        "floor ms": lambda row: three_digits(row.get("sparse_floor_ms")),
    }
    epochs = read_json("bench/engine-h200")["epochs"]
    return bench_table("engine-h200", epochs, columns, 2)


def cpu_epochs(_: Sources) -> str:
    """An epoch of LINKX on two CPU cores."""
    columns: Columns = {
        "hidden": lambda row: str(row["hidden"]),
        "an epoch of LINKX": lambda row: code(row["what"]),
        "ms": lambda row: three_digits(row["ms"]),
        "times as fast as PyG on CSR": lambda row: f"{row['times_fastest_peer']:.1f}",
    }
    return bench_table(
        "engine-cpu", read_json("bench/engine-cpu")["epochs"], columns, 2
    )


def stacks(file: str) -> Callable[[Sources], str]:
    """Stacks of LINKX on a small graph."""

    def table(_: Sources) -> str:
        rows = read_json(f"bench/{file}")["stacks"]
        one = rows[0]["model_epochs_per_second"]
        columns: Columns = {
            "runs in a stack": lambda row: str(row["runs"]),
            "ms per epoch": lambda row: three_digits(row["ms"]),
            "model-epochs per second": lambda row: (
                f"{row['model_epochs_per_second']:,.0f}"
            ),
            "times one run": lambda row: f"{row['model_epochs_per_second'] / one:.1f}",
        }
        return bench_table(file, rows, columns, 0)

    return table


STATE_OF_THE_ART = {
    "best published": "published",
    "LINKX": "linkx",
    "VIEWS": "views",
    "VIEWS-trees": "views-trees",
}
"""Recipes of the columns of the table of VIEWS."""


ABLATION = {
    "all groups": "all",
    "no structure": "without-structure",
    "no features": "without-features",
    "no spectrum": "without-spectrum",
    "no labels": "without-labels",
    "no duplicates": "without-duplicates",
    "no bases": "without-bases",
}
"""Recipes of the columns of the ablation of views."""


def by_graph(
    folder: str, columns: Mapping[str, str], needed: Sequence[str]
) -> Callable[[Sources], str]:
    """The cells of recipes, on the graphs where one of the needed columns is stored."""

    def table(sources: Sources) -> str:
        recipe, _ = sources.cell(f"{folder}/{columns[needed[0]]}", "texas")
        rows = []
        for dataset in recipe.cells:
            found = {
                name: views_cell(sources, f"{folder}/{row}", dataset)
                for name, row in columns.items()
            }
            if any(found[name] for name in needed):
                rows.append([dataset, *found.values()])
        return markdown_table(["graph", *columns], rows, 1)

    return table


def views_cell(sources: Sources, name: str, dataset: str) -> str:
    """A score, with its source where it is published; empty where there is none."""
    recipe, cell = sources.cell(name, dataset)
    if recipe.method is None:
        return (
            "" if cell.mean is None else f"{score((cell.mean, cell.std))} {cell.quoted}"
        )
    chosen = sources.selector.select(recipe, cell).chosen
    return "" if chosen is None else score((chosen.test, chosen.std))


METHOD_NAMES = {
    "gcn": "GCN",
    "gat": "GAT, 4 heads of 8",
    "mixhop": "MixHop",
    "appnp": "APPNP",
    "gpr-gnn": "GPR-GNN",
    "gcnii": "GCNII, 8 layers",
    "sage": "GraphSAGE",
    "dir-gnn": "Dir-GNN",
}


def method_epochs(_: Sources) -> str:
    """An epoch of the message-passing methods on a GPU."""
    columns: Columns = {
        "method": lambda row: METHOD_NAMES[row["method"]],
        "an epoch of": lambda row: code(row["what"]),
        "ms": lambda row: three_digits(row["ms"]),
        "times as fast as PyG": lambda row: f"{row['times_fastest_peer']:.1f}",
        "GiB": lambda row: f"{row['gib']:.2f}",
        "times the memory of PyG": lambda row: f"{row['share_of_its_memory']:.2f}",
    }
    epochs = read_json("bench/methods-h200")["epochs"]
    return bench_table("methods-h200", epochs, columns, 2)


def cpu_method_epochs(_: Sources) -> str:
    """An epoch of the message-passing methods on two CPU cores."""
    columns: Columns = {
        "method": lambda row: METHOD_NAMES[row["method"]],
        "an epoch of": lambda row: code(row["what"]),
        "ms": lambda row: three_digits(row["ms"]),
        "times as fast as PyG": lambda row: f"{row['times_fastest_peer']:.1f}",
    }
    epochs = read_json("bench/methods-cpu")["epochs"]
    return bench_table("methods-cpu", epochs, columns, 2)


def row_loader(_: Sources) -> str:
    """Random rows of a stored graph as batches, compared with scipy."""
    columns: Columns = {
        "random rows to a batch": lambda row: code_name(row["what"]),
        "million edges per second": lambda row: (
            f"{row['million_edges_per_second']:,.0f}"
        ),
        "times scipy": lambda row: f"{row['times_scipy']:.1f}",
    }
    ways = read_json("bench/row-loader-cpu")["ways"]
    shown = [way for way in ways if way["what"] != "torch features[ids]"]
    return bench_table("row-loader-cpu", shown, columns, 1)


def code_name(what: str) -> str:
    return what.replace("csr[rows]", "`csr[rows]`")


MIB = 2**20


def scale_epochs(_: Sources) -> str:
    """Epochs of one, two and four processes."""
    columns: Columns = {
        "processes": lambda row: str(row["processes"]),
        "hidden": lambda row: str(row["hidden"]),
        "batch": lambda row: f"{row['rows']:,}",
        "seconds per epoch": lambda row: f"{row['seconds']:.2f}",
        "× one process": lambda row: f"{row['times_first']:.2f}",
        "bytes sent per step": lambda row: f"{row['step_bytes']:,.0f}",
        "relative to the formula, mean / max": lambda row: (
            f"{row['step_bytes'] / row['step_bytes_formula']:.2f} / "
            f"{row['most_step_bytes'] / row['step_bytes_formula']:.2f}"
        ),
        "peak MiB": lambda row: f"{row['peak_bytes'] / MIB:,.0f}",
        "table MiB": lambda row: f"{row['table_bytes'] / MIB:.1f}",
        "relative to one process": lambda row: f"{row['share_of_table']:.3f}",
    }
    return bench_table(
        "scale-cpu", read_json("bench/scale-cpu")["measured"], columns, 0
    )


BANDWIDTHS = (10.0, 25.0, 100.0)


def scale_prediction(_: Sources) -> str:
    """An epoch of a very large graph on 64 hosts, by the rates that were fitted."""
    rows = []
    for bandwidth in BANDWIDTHS:
        row = predicted(bandwidth)
        sent = row["seconds_by"]["byte"] + row["seconds_by"]["message"]
        minutes = f"{row['seconds'] / 60:.0f}"
        rows.append([f"{bandwidth:g}", minutes, f"{100 * sent / row['seconds']:.0f} %"])
    heads = ["Gbit/s", "minutes per epoch", "of which communication"]
    memory = ", ".join(
        f"{size / 1e9:.1f} for {PARTS[part]}"
        for part, size in row["bytes_by"].items()
        if part in PARTS
    )
    mapped = " and ".join(
        f"{row['bytes_by'][part] / 1e9:.1f} GB of {part}" for part in MAPPED
    )
    return (
        markdown_table(heads, rows, 0)
        + f"\nA host needs {row['held_bytes'] / 1e9:.0f} GB: {memory}. {mapped} are "
        "mapped from files.\n"
    )


PARTS = {
    "table": "its part of the weights",
    "nodes": "labels, degrees and scores of all nodes",
    "batch": "a batch",
    "program": "the program",
}


def predicted(bandwidth: float) -> dict[str, Any]:
    """The prediction of `unalike bench scale --bandwidth` from its stored rates."""
    found = read_json("bench/scale-cpu")
    model, last = found["model"], found["measured"][-1]
    names = ("bytes_per_node", "batch_copies", "program")
    load = Workload(
        **found["graph"],
        hidden=last["hidden"],
        rows=last["rows"],
        processes=last["processes"],
    )
    cluster = Cluster(bandwidth=bandwidth)
    prediction = cluster.predict(
        TimeModel(model["seconds_per"]),
        MemoryModel(**{name: model[name] for name in names}),
        load,
    )
    (row,) = (r for r in prediction["by_hosts"] if r["hosts"] == cluster.hosts)
    return row


def twins(_: Sources) -> str:
    """Twins at full size: homophily as published and as generated, and the cost."""
    columns: Columns = {
        "twin": lambda row: row["name"].removesuffix("-twin"),
        "nodes": lambda row: f"{row['nodes']:,}",
        "edges": lambda row: f"{row['edges']:,}",
        "h published": lambda row: thousandths(published(row).edge_homophily),
        "h": lambda row: thousandths(row["edge_homophily"]),
        "ĥ published": lambda row: thousandths(published(row).class_homophily),
        "ĥ": lambda row: thousandths(row["class_homophily"]),
        "seconds": lambda row: f"{row['seconds']:.0f}",
        "peak GB": lambda row: f"{row['peak_GB']:.1f}",
        "disk GB": lambda row: f"{row['disk_GB']:.2f}",
    }
    return bench_table("twins-cpu", read_json("bench/twins-cpu")["twins"], columns, 1)


def fault_tests(_: Sources) -> str:
    """Cases of each family of fault tests that were tried, and tests that failed."""
    found = read_json("bench/faults")
    rows = [{"name": name, **counts} for name, counts in found["families"].items()]
    columns: Columns = {
        "family": lambda row: row["name"],
        "tests": lambda row: f"{row['tests']}",
        "cases": lambda row: f"{row['cases']:,}",
        "failed tests": lambda row: f"{row['failed']}",
        "minutes": lambda row: f"{row['minutes']:.1f}",
    }
    total = {"name": "all", **{name: found[name] for name in rows[0] if name != "name"}}
    return bench_table("faults", [*rows, total], columns, 1)


def published(row: Row) -> Any:
    """Published statistics of the dataset of a twin."""
    return DATASETS[row["name"].removesuffix("-twin")].published


def thousandths(number: float) -> str:
    """Three decimals without a leading zero."""
    return rounded(number, 3).removeprefix("0")


def twin_scores(sources: Sources) -> str:
    """Logistic regression on twins, next to printed scores of LINK and MLP."""
    rows = []
    for name, nodes, links, features in read_json("bench/twin-scores")["rows"]:
        recipe = "minibatch" if name == "wiki" else "full-batch"
        link, mlp = (
            rounded(sources.printed(f"{recipe}/{method}", name)[0], 1)
            for method in ("link", "mlp")
        )
        metric = ", ROC-AUC" * (name == "genius")
        label = f"{name} ({nodes:,}){metric}"
        rows.append([label, str(links), link, str(features), mlp])
    heads = ["twin (nodes)", "rows of A", "LINK, published", "features"]
    return markdown_table([*heads, "MLP, published"], rows, 1) + source_line(
        "twin-scores"
    )


DUMP_STAGES = {
    "Unpacking pagelinks": "Decompressing pagelinks",
    "and scanning it": "… and scanning it",
    "all": "All but the first two",
}


def dump_time(_: Sources) -> str:
    """What reading generated dumps of a wiki takes, by stage."""
    found = read_json("bench/dumps-cpu")
    total = {"stage": "all", "seconds": found["seconds"], "cpu": found["cpu"]}
    columns: Columns = {
        "stage": lambda row: DUMP_STAGES.get(row["stage"], row["stage"]),
        "seconds": lambda row: f"{row['seconds']:.1f}",
        "CPU seconds": lambda row: f"{row['cpu']:.1f}",
    }
    return bench_table("dumps-cpu", [*found["stages"], total], columns, 1)


def batch_cost(_: Sources) -> str:
    """The same batch on graphs of several sizes."""
    found = read_json("bench/batch-cost-cpu")
    columns: Columns = {
        f"ms per batch of {found['size']:,} nodes": lambda row: row["batch"],
        **{
            f"{nodes:,} nodes": lambda row, at=at: three_digits(row["ms"][at])
            for at, nodes in enumerate(found["nodes"])
        },
    }
    return bench_table("batch-cost-cpu", found["rows"], columns, 1)


def views_size(file: str) -> Callable[[Sources], str]:
    """Time and memory of views of pokec-twin by stage."""

    def table(_: Sources) -> str:
        found = read_json(f"bench/{file}")
        columns: Columns = {
            "stage": lambda row: row["stage"],
            "seconds": lambda row: f"{row['seconds']:.1f}",
            "CPU seconds": lambda row: f"{row['cpu_seconds']:.1f}",
            "own GB": lambda row: f"{row['own_gb']:.1f}",
            "with mapped files, GB": lambda row: f"{row['resident_gb']:.1f}",
        }
        if "gpu_gb" in found["stages"][0]:
            columns["GPU, GB"] = lambda row: f"{row['gpu_gb']:.1f}"
        return bench_table(file, found["stages"], columns, 1)

    return table


def cross_fit(file: str) -> Callable[[Sources], str]:
    """Time of all folds of a base beside that of a single fit."""

    def table(_: Sources) -> str:
        fits = read_json(f"bench/{file}")["fits"]
        columns: Columns = {
            "graph": lambda row: row["dataset"],
            "nodes": lambda row: f"{row['nodes']:,}",
            "single fit, s": lambda row: f"{row['single_s']:.3f}",
            "five folds in a stack, s": lambda row: f"{row['cross_fit_s']:.3f}",
            "times a fit": lambda row: f"{row['ratio']:.1f}",
        }
        return bench_table(file, fits, columns, 1)

    return table


def warehouse(file: str) -> Callable[[Sources], str]:
    """Work on a graph in DuckDB beside the same on files."""

    def table(_: Sources) -> str:
        columns: Columns = {"work": lambda row: row["job"]}
        for head, key in (("DuckDB", "duckdb"), ("files", "files")):
            columns |= {
                f"{head}, s": lambda row, key=key: three_digits(row[key]["seconds"]),
                f"{head}, CPU s": lambda row, key=key: three_digits(
                    row[key]["cpu_seconds"]
                ),
                f"{head}, GB": lambda row, key=key: f"{row[key]['resident_gb']:.1f}",
            }
        columns["times the CPU time"] = lambda row: three_digits(
            row["times_cpu_seconds"]
        )
        return bench_table(file, read_json(f"bench/{file}")["rows"], columns, 1)

    return table


def advice(_: Sources) -> str:
    """First recommendation and best method of the graphs that were held out."""
    rows = []
    for one in advice_outcomes():
        best, below = one.tests[one.best], one.points_below("first")
        first = f"{one.first} {best - below:.1f}"
        rows.append([one.graph, first, f"{one.best} {best:.1f}", f"{below:.1f}"])
    heads = ["graph", "first recommendation", "best of all sixteen"]
    return markdown_table([*heads, "points below the best"], rows, 3)


def layer_times(*files: str) -> Callable[[Sources], str]:
    """A training step of each layer of unalike.pyg next to PyG's, of several runs.

    Where two runs have a layer on the same graph, that of the first file counts.
    """

    def table(_: Sources) -> str:
        found: list[Row] = []
        for file in files:
            timed = {(row["layer"], row["graph"]) for row in found}
            rows = read_json(f"bench/{file}")["layers"]
            found += [row for row in rows if (row["layer"], row["graph"]) not in timed]
        rows = [row for row in found if row["ours"] and not row["compiled"]]
        cells = [
            [text(row, fastest_of_pyg(row, found)) for text in LAYER_COLUMNS.values()]
            for row in rows
        ]
        lines = "".join(source_line(file) for file in files)
        return markdown_table([*LAYER_COLUMNS], cells, 4) + lines

    return table


def fastest_of_pyg(ours: Row, rows: Sequence[Row]) -> Row:
    """The form of PyG whose step takes the least time."""
    timed = (
        row
        for row in rows
        if (row["graph"], row["layer"]) == (ours["graph"], ours["layer"])
        and not row["ours"]
        and row["step_ms"]
    )
    return min(timed, key=lambda row: row["step_ms"])


LAYER_COLUMNS: dict[str, Callable[[Row, Row], str]] = {
    "nodes": lambda row, _: f"{row['nodes']:,}",
    "entries": lambda row, _: f"{row['entries']:,}",
    "layer": lambda row, _: f"`{row['layer']}`",
    "fastest form of PyG": lambda _, pyg: code(pyg["what"].removeprefix("PyG on ")),
    "its step, ms": lambda _, pyg: three_digits(pyg["step_ms"]),
    "ours, ms": lambda row, _: three_digits(row["step_ms"]),
    "times as fast": lambda row, _: f"{row['times_step']:.1f}",
    "forward pass alone": lambda row, _: f"{row['times_forward']:.1f}",
    "times its memory": lambda row, _: f"{row['share_of_memory']:.2f}",
}


BLOCKS: dict[str, Callable[[Sources], str]] = {
    "linkx grids": linkx_grids,
    "linkx starts": linkx_starts,
    "large graphs": large_graphs,
    "small graphs": small_graphs,
    "views": by_graph("state-of-the-art", STATE_OF_THE_ART, ("VIEWS", "VIEWS-trees")),
    "views ablation": by_graph("views-ablation", ABLATION, ("all groups",)),
    "linkx epochs": linkx_epochs,
    "linkx stacks": stacks("engine-h200"),
    "linkx grid stacks": stored("stacks-h200"),
    "method epochs": method_epochs,
    "cpu epochs": cpu_epochs,
    "cpu stacks": stacks("stacks-cpu"),
    "cpu method epochs": cpu_method_epochs,
    "layer times": layer_times("layers-cpu"),
    "layer times on a GPU": layer_times(
        "layers-h200", "layers-pokec-h200", "layers-pokec-gat-h200"
    ),
    "larger than memory": stored("larger-than-memory"),
    "row loader": row_loader,
    "row batches": stored("row-batches"),
    "batch cost": batch_cost,
    "views size": views_size("views-size-cpu"),
    "views size on a GPU": views_size("views-size-h200"),
    "cross fit on a GPU": cross_fit("cross-fit-h200"),
    "warehouse": warehouse("warehouse-cpu"),
    "warehouse samples": stored("warehouse-sample"),
    "start": stored("start-cpu"),
    "scoring": stored("scoring-cornell5"),
    "two processes": stored("two-processes-cornell5"),
    "scale epochs": scale_epochs,
    "scale prediction": scale_prediction,
    "twins": twins,
    "twin scores": twin_scores,
    "fault tests": fault_tests,
    "dump memory": stored("dumps-memory"),
    "dump time": dump_time,
    "advice": advice,
}
"""Tables by the name between `<!-- numbers: NAME -->` and the end of numbers."""
