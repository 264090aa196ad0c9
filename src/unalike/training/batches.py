"""Batches: epochs of several steps, each on a piece of the graph."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Ids
from unalike.batchings.batching import Batch, Batching
from unalike.batchings.prefetch import Prefetch
from unalike.graph import Graph
from unalike.metrics import TINY
from unalike.task import Task
from unalike.training.carry import carried
from unalike.training.descent import Slopes, descend, slopes_of
from unalike.training.roles import Roles
from unalike.training.scoring import on_host, rows_of, score
from unalike.training.state import State
from unalike.training.stock import Stock
from unalike.training.turns import average, mean_slopes, own_batches
from unalike.training.world import World


@dataclass(eq=False)
class BatchEpochs:
    """Epochs over batches, which all runs of a stack learn from.

    The batches of an epoch depend on the seed of the first run and the number of the
    epoch alone, so that training goes on from a checkpoint as if it had not been
    stopped. A run that has no train node in a batch moves on without a slope.
    """

    state: State
    graph: Graph
    task: Task
    """That of the first run."""
    roles: Roles
    batching: Batching
    device: torch.device
    world: World = field(default_factory=World)
    """The processes that learn from a batch each, and then take one step."""
    waited: float = 0.0
    """Seconds spent waiting for batches."""
    learned: float = 0.0
    """Seconds spent in steps, that waiting included."""
    entries: int = 0
    """Entries of the adjacency that went through a step."""
    crowded: bool = False
    """Is the graph too large to be scored on the card?"""

    def advance(self) -> None:
        """One more epoch."""
        chance = torch.Generator().manual_seed(self.task.seed)
        draw = int(torch.randint(2**62, (self.state.epoch + 1,), generator=chance)[-1])
        if self.world.size > 1:
            # What is dropped differs by process, also after a checkpoint.
            torch.manual_seed(draw + 1 + self.world.rank)
        self._learn(chance.manual_seed(draw))
        average(self.state.stack.buffers.values(), self.world)
        for table in self.state.stack.tables.values():
            table.settle(self.state.last_step())
        valid, weight = self.roles.valid, self.roles.grade[self.roles.split]
        scores = self._score(valid, chance, best=False)
        labels = self.graph.labels[valid.to(self.graph.labels.device)]
        grade = self.task.metric.grade(scores, labels.to(self.device), weight)
        self.world.follow_first(grade)
        self.state.note_grade(grade)
        self.state.keep_best()
        self.state.epoch += 1

    @property
    def told(self) -> str:
        """How fast it goes, and what of the time is spent waiting for batches."""
        speed = self.entries / max(self.learned, 1e-9) / 1e6
        waiting = self.waited / max(self.learned, 1e-9)
        where = ", scored in main memory" if self.crowded else ""
        return f" {speed:,.1f} M edges/s, {waiting:.0%} waiting for them{where}"

    def score(self) -> Float[Tensor, "runs nodes classes"]:
        """Score every node with the best weights of each run."""
        chance = torch.Generator().manual_seed(self.task.seed)
        everything = torch.arange(self.graph.num_nodes)
        return self._score(everything, chance, best=True)

    def _learn(self, chance: torch.Generator) -> None:
        began = time.perf_counter()
        losses: list[Tensor] = []
        counts: list[Tensor] = []
        batches = self._batches(chance)
        for batch in batches:
            slopes = mean_slopes(self._slopes(batch), self.world, counts=batch.counts)
            descend(self.state, slopes)
            losses.append(slopes.loss)
            counts.append(slopes.weight)
            self.entries += batch.graph.adjacency.num_entries
        self.waited += batches.waited
        self.learned += time.perf_counter() - began
        if losses:
            weight = torch.stack(counts)
            self.state.note_loss(
                (weight * torch.stack(losses)).sum(0) / weight.sum(0).clamp(min=TINY)
            )

    def _batches(self, chance: torch.Generator) -> Prefetch[Batch]:
        """The batches of an epoch, at hand on the device or made while others learn."""
        if self._stock is not None:
            return Prefetch(own_batches(self._stock.drawn(chance), self.world), depth=0)
        drawn = self._shared.drawn(self.graph, self.roles.train, chance)
        return Prefetch(carried(own_batches(drawn, self.world), self.device))

    @property
    def _shared(self) -> Batching:
        return self.batching.share(self.world.size)

    @cached_property
    def _stock(self) -> Stock | None:
        return Stock.of(self._shared, self.graph, self.roles.train, self.device)

    def _slopes(self, batch: Batch) -> Slopes:
        stack, graph = self.state.stack, batch.graph
        weight = self.roles.weight(graph.ids, batch.weight)
        metric = self.task.metric
        return slopes_of(stack, graph, weight, stack.products(graph), metric)

    def _score(
        self, ids: Ids, chance: torch.Generator, *, best: bool
    ) -> Float[Tensor, "runs nodes classes"]:
        """Scores of some nodes, by the present weights or the best."""
        runs, graph = self.state.stack.num_runs, self.graph
        place = "cpu" if best else self.device
        scores = torch.empty(runs, graph.num_nodes, graph.num_classes, device=place)
        drawn = chance.get_state()
        try:
            state = on_host(self.state) if self.crowded else self.state
            score(state, self._pieces(ids, chance), scores, best=best)
        except torch.OutOfMemoryError:
            if self.crowded:
                raise
            self.crowded = True
            vars(self).pop("_whole", None)
            chance.set_state(drawn)
            return self._score(ids, chance, best=best)
        return scores[:, ids.to(place)]

    def _pieces(self, ids: Ids, chance: torch.Generator) -> Iterator[Graph]:
        if self.state.stack.row_wise:
            yield from rows_of(self.state, self.graph, ids)
            return
        for piece in self.batching.cover(self.graph, chance):
            whole = piece is self.graph and not self.crowded
            yield self._whole if whole else piece

    @cached_property
    def _whole(self) -> Graph:
        return self.graph.to(self.device)
