"""`unalike views`: write leak-free columns per node for other learners."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from unalike import datasets
from unalike.cli.console import print_output, progress_bar
from unalike.data.regression import check_has_classes
from unalike.data.task import Task
from unalike.device import choose_device
from unalike.errors import UserError, check_seed
from unalike.experiments.config import DatasetOptions
from unalike.files import check_writable
from unalike.methods.view_table import write_views
from unalike.methods.views import AUTO, Views
from unalike.views import group_of


def command(
    dataset: Annotated[str, tyro.conf.Positional],
    /,
    *,
    out: Path,
    split: int = 0,
    views: tuple[str, ...] = AUTO,
    bases: tuple[str, ...] = AUTO,
    hops: int = 2,
    folds: int = 5,
    seed: int = 0,
    both_ways: bool = False,
    as_stored: bool = False,
    device: str = "auto",
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Write a table with a row per node: columns made from the graph and train labels.

    No row depends on its own label, nor on a label of valid or test nodes, so that
    LightGBM, CatBoost or scikit-learn can learn the train rows and be tested on others.

    Example: unalike views chameleon --as-stored --out views.parquet

    Args:
        dataset: A name of `unalike list datasets`, or the folder of a stored graph.
        out: File to write, Parquet or CSV.
        split: Number of the split whose train labels are known.
        views: Groups: structure features spectrum labels duplicates near-duplicates
            bases; auto: all but near-duplicates.
        bases: Methods whose cross-fitted log probabilities are columns, or logistic.
        hops: Steps of walks, up to 3.
        folds: Folds of cross-fitting.
        seed: Seed of folds and base methods.
        both_ways: Make the graph undirected, also where direction is usually preserved.
        as_stored: Use the stored graph: directed edges, no added loops, raw features.
        device: cpu, cuda, or auto: a GPU if there is one.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of a line.
    """
    check_writable(out)
    check_seed(seed)
    options = DatasetOptions(both_ways=both_ways, as_stored=as_stored)
    source = options.apply(datasets.find(dataset, data))
    method = Views(views=views, bases=bases, hops=hops, folds=folds)
    with progress_bar() as progress:
        graph = source.prepared(progress=progress)
        check_has_classes(graph, "views")
        splits = source.splits()
        if not 0 <= split < len(splits):
            raise UserError(
                f"--split is {split}; {source.name} has {len(splits)} splits, from 0."
            )
        task = Task.from_split(graph, splits[split], source.metric, seed)
        [problem] = method.problems([task], choose_device(device), progress)
        table = problem.table
        progress.stage(f"writing {out}", None, "")
        write_views(out, table, splits[split], graph.labels)
    widths = dict.fromkeys(table.groups, 0)
    for name, block in table.blocks.items():
        widths[group_of(name)] += block.width
    columns = ", ".join(f"{width} {group}" for group, width in widths.items())
    document = {"out": str(out), "rows": graph.num_nodes, "columns": widths}
    text = f"{out}: {graph.num_nodes:,} rows; columns: {columns}"
    print_output(document, text, json=json)
