"""Draws: known labels, dealt out to learn from, to stop by and to judge by."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unalike.adjacency import Ids
from unalike.advice.effort import Effort
from unalike.advice.sample import Sample
from unalike.errors import UserError
from unalike.graph import Graph
from unalike.metrics import Metric
from unalike.split import Split
from unalike.task import Solution, Task

HALF = 0.5
"""Share of the valid nodes that judge, while the others choose the epoch."""
USUAL = 0.3
"""Share of the known labels that are valid, where none is."""
JUDGES = 4000
"""Nodes that should judge in all."""
FEWEST = 10
"""Known labels below which nothing can be judged."""


@dataclass(frozen=True, eq=False)
class Draw:
    """A task that hides its judges, and the answers they judge by."""

    task: Task
    judges: Ids
    answers: Ids

    def grade(self, solution: Solution) -> float:
        """The percentage that a solution reaches with the judges."""
        metric, weight = self.task.metric, torch.ones(len(self.judges))
        return 100 * float(
            metric.grade(solution.scores[self.judges], self.answers, weight)
        )

    @property
    def constant(self) -> float:
        """The percentage of always giving the most frequent answer."""
        labels = self.task.graph.labels
        usual = labels[self.task.train].bincount(minlength=self.task.graph.num_classes)
        return self.grade(Solution(usual.float().expand(len(labels), -1)))


def draws(sample: Sample, metric: Metric, seed: int, most: Effort) -> list[Draw]:
    """The split's own division first, then others of the same nodes, two draws each.

    Half of the valid nodes choose the epoch and the other half judge, then they change
    places. Labels of test nodes are never looked at.
    """
    graph, split = sample.graph, sample.split
    known = torch.cat([split.train, split.valid])
    if len(known) < FEWEST:
        raise UserError(
            f"There are {len(known)} labels to learn and judge by; "
            f"advice needs at least {FEWEST}."
        )
    chance = torch.Generator().manual_seed(seed)
    share = len(split.valid) / len(known) or USUAL
    wanted = number(graph, share * len(known), most)
    found: list[Draw] = []
    while len(found) < wanted:
        own = not found and len(split.valid)
        train, valid = split.train, split.valid
        if not own:
            train, valid = deal(graph, known, share, chance)
        halves = deal(graph, valid, HALF, chance)
        for stop, judges in (halves, halves[::-1]):
            task = Task.hide(graph, Split(train, stop, judges), metric, seed)
            found.append(Draw(task, judges, graph.labels[judges]))
        seed += 1
    return [draw for draw in found[:wanted] if fair(draw)] or refuse(metric)


def number(graph: Graph, num_valid: float, most: Effort) -> int:
    """How many draws it takes to judge by enough nodes, in bounded time."""
    by_nodes = int(JUDGES / max(1.0, HALF * num_valid))
    by_work = most.entries // max(1, graph.adjacency.num_entries)
    return max(1, min(by_nodes, by_work, most.draws))


def deal(
    graph: Graph, ids: Ids, share: float, chance: torch.Generator
) -> tuple[Ids, Ids]:
    """Two parts of some nodes; the second has about this share of every class."""
    ids = ids[torch.randperm(len(ids), generator=chance)]
    labels = graph.labels[ids]
    ids = ids[labels.argsort(stable=True)]
    sizes = labels.bincount(minlength=graph.num_classes)
    place = torch.arange(len(ids)) - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    wanted = (share * sizes).round().clamp(min=1).where(sizes > 1, 0)
    second = place < wanted.repeat_interleave(sizes)
    return ids[~second], ids[second]


def fair(draw: Draw) -> bool:
    """Can its judges, and those who choose the epoch, grade anything?"""
    task, labels = draw.task, draw.task.graph.labels
    flat = torch.zeros(len(task.valid), task.graph.num_classes)
    chosen = task.metric.grade(flat, labels[task.valid], torch.ones(len(task.valid)))
    return bool(chosen.isfinite()) and draw.constant == draw.constant


def refuse(metric: Metric) -> list[Draw]:
    """Say that the known labels do not suffice."""
    raise UserError(
        f"The known labels are too few of a class to judge by {metric.name}; "
        "label more nodes, or judge by another metric."
    )
