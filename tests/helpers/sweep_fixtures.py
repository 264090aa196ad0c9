"""A small sweep on a generated graph, and the databases to keep it in."""

import os

import torch
from graphs import suiting

from unalike import random_splits, save_graph
from unalike.experiments import worker as workers
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.leases import count_active
from unalike.experiments.plan import SweepRequest, plan_sweep
from unalike.experiments.recipe import parse
from unalike.experiments.sweep import WorkerOptions, sweep

SPLITS = 3
RECIPE = """
method = "linkx"
splits = {splits}

[grid]
hidden = {hidden}
lr = [0.01, 0.05]
dropout = [0.0, 0.5]
layers = 2
epochs = {epochs}

[cells]
"{dataset}" = {{ mean = 70.0, std = 2.0 }}
"""
TOLD = ("key", "setting", "split", "train", "valid", "test", "best_epoch")


def stored(folder, *, nodes=60, name="small"):
    """A graph in a folder, with splits."""
    graph = suiting(nodes=nodes)
    splits = random_splits(graph.labels, count=SPLITS)
    save_graph(folder / name, graph, splits=splits)
    return str(folder / name)


def recipe_text(dataset, *, hidden="[4, 8, 12]", epochs=5):
    return RECIPE.format(splits=SPLITS, hidden=hidden, epochs=epochs, dataset=dataset)


def small_request(dataset, **how):
    return SweepRequest(recipes=[parse(recipe_text(dataset, **how), "small")])


def small_plan(dataset, **how):
    return plan_sweep(small_request(dataset, **how))


def swept(plan, url, lease=60.0):
    """Run an plan; a function of a module, so that a process can do it."""
    torch.set_num_threads(1)  # as here: the order of sums follows their number
    return sweep(plan, url, workers=WorkerOptions(lease_seconds=lease))


def swept_openly(plan, url, log, room=None):
    """The same, with a line in a file for each run and who computes it.

    The device may have memory for a few runs only.
    """
    run_together = workers.run_stack

    def limited(dataset, members, **how):
        lines = [f"{os.getpid()}: {method} {split}\n" for method, split in members]
        with log.open("a") as file:
            file.writelines(lines)
        return run_together(dataset, members, **how)

    workers.run_stack = limited
    if room is not None:
        workers.max_stacked_runs = lambda *_: room
    return swept(plan, url)


def outcome(url):
    """What a database holds, without what differs from time to time."""
    results = ResultsDatabase.open(url)
    rows = [tuple(row[name] for name in TOLD) for row in results.runs()]
    assert count_active(results.engine) == 0
    results.close()
    return rows
