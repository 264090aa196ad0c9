"""Mini-batch epoch, async copy to GPU, cache of repeating batches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Ids
from unalike.data.graph import Graph
from unalike.data.metrics import MIN_WEIGHT
from unalike.data.task import Task
from unalike.parallel import Prefetch
from unalike.samplers.base import Batch, LazyBatch, Sampler, shuffled
from unalike.system import free_memory
from unalike.training.data_parallel import (
    all_reduce_gradients,
    average_buffers,
    local_batches,
)
from unalike.training.distributed import World
from unalike.training.masks import SplitMasks
from unalike.training.memory import _tensors, graph_nbytes
from unalike.training.state import State
from unalike.training.step import (
    Gradients,
    compute_gradients,
    copy_to_cpu,
    inference_rows,
    optimizer_step,
    predict_into,
)

# Carry: bring batches to where they are needed, while others are worked on.


def to_device_async(batches: Iterator[Batch], device: torch.device) -> Iterator[Batch]:
    """The same batches on the device, fetched from pinned memory beside other work."""
    if device.type != "cuda":
        yield from batches
        return
    main, side = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    for batch in batches:
        with torch.cuda.stream(side):
            graph = _pinned_copy(batch.graph, device)
            moved = replace(
                batch, graph=graph, loss_weight=batch.loss_weight.to(device)
            )
            side.synchronize()
        for tensor in (*_tensors(graph), moved.loss_weight):
            tensor.record_stream(main)
        yield moved


def _pinned_copy(graph: Graph, device: torch.device) -> Graph:
    if graph.labels.is_cuda:
        return graph
    pinned = replace(
        graph,
        adjacency=graph.adjacency.pin_memory(),
        features=graph.features.pin_memory(),
        labels=graph.labels.pin_memory(),
        node_ids=graph.ids.pin_memory(),
    )
    return pinned.to(device)


# Stock: batches that come again in every epoch, and stay on the device.


MAX_GRAPH_SHARE = 0.1
"""Share of free memory that the batches of a graph may take at first."""
MIN_FREE_SHARE = 0.5
"""Share of it that stays free: methods leave with a batch what they find about it."""


@dataclass(frozen=True, eq=False)
class BatchCache:
    """Batches that are cut and carried once, as long as memory lasts."""

    lazy_batches: list[LazyBatch]
    device: torch.device
    min_free_bytes: float
    """Bytes that stay free."""
    cached: dict[int, Batch] = field(default_factory=dict)

    @classmethod
    def of(
        cls, batching: Sampler, graph: Graph, train: Ids, device: torch.device
    ) -> BatchCache | None:
        """The stock of a batching, where its batches come again and there is room."""
        cuts = batching.fixed_batches(graph, train)
        free = free_memory(device)
        if cuts is None or graph_nbytes(graph) > MAX_GRAPH_SHARE * free:
            return None
        return cls(cuts, device, MIN_FREE_SHARE * free)

    def drawn(self, chance: torch.Generator) -> Iterator[LazyBatch]:
        """The batches of an epoch, in the order in which they would be drawn."""
        places = range(len(self.lazy_batches))
        return shuffled([partial(self.batch, place) for place in places], chance)

    def batch(self, place: int) -> Batch:
        """A batch on the device."""
        if place in self.cached:
            return self.cached[place]
        batch = self.lazy_batches[place]()
        graph, weight = batch.graph.to(self.device), batch.loss_weight.to(self.device)
        there = replace(batch, graph=graph, loss_weight=weight)
        if free_memory(self.device) > self.min_free_bytes:
            self.cached[place] = there
        return there


# Batches: epochs of several steps, each on a piece of the graph.


@dataclass(eq=False)
class MiniBatchEpochs:
    """Epochs over batches, which all runs of a stack learn from.

    The batches of an epoch depend on the seed of the first run and the number of the
    epoch alone, so that training goes on from a checkpoint as if it had not been
    stopped. A run that has no train node in a batch moves on without a slope.
    """

    state: State
    graph: Graph
    task: Task
    """That of the first run."""
    roles: SplitMasks
    batching: Sampler
    device: torch.device
    world: World = field(default_factory=World)
    """The processes that learn from a batch each, and then take one step."""
    wait_seconds: float = 0.0
    """Seconds spent waiting for batches."""
    step_seconds: float = 0.0
    """Seconds spent in steps, that waiting included."""
    edges_seen: int = 0
    """Entries of the adjacency that went through a step."""
    score_on_cpu: bool = False
    """Is the graph too large to be scored on the card?"""

    def run_epoch(self) -> None:
        """One more epoch."""
        chance = torch.Generator().manual_seed(self.task.seed)
        draw = int(torch.randint(2**62, (self.state.epoch + 1,), generator=chance)[-1])
        if self.world.size > 1:
            # What is dropped differs by process, also after a checkpoint.
            torch.manual_seed(draw + 1 + self.world.rank)
        self._train_steps(chance.manual_seed(draw))
        average_buffers(self.state.stack.buffers.values(), self.world)
        for table in self.state.stack.sparse_weights.values():
            table.catch_up(self.state.last_step())
        valid, weight = (
            self.roles.valid,
            self.roles.eval_weight[self.roles.split_of_run],
        )
        scores = self._score(valid, chance, best=False)
        labels = self.graph.labels[valid.to(self.graph.labels.device)]
        grade = self.task.metric.score(scores, labels.to(self.device), weight)
        self.world.broadcast(grade)
        self.state.record_score(grade)
        self.state.save_best()
        self.state.epoch += 1

    @property
    def progress_note(self) -> str:
        """How fast it goes, and what of the time is spent waiting for batches."""
        speed = self.edges_seen / max(self.step_seconds, 1e-9) / 1e6
        waiting = self.wait_seconds / max(self.step_seconds, 1e-9)
        where = ", scored in main memory" if self.score_on_cpu else ""
        return f" {speed:,.1f} M edges/s, {waiting:.0%} waiting for them{where}"

    def score(self) -> Float[Tensor, "runs nodes classes"]:
        """Score every node with the best weights of each run."""
        chance = torch.Generator().manual_seed(self.task.seed)
        everything = torch.arange(self.graph.num_nodes)
        return self._score(everything, chance, best=True)

    def _train_steps(self, chance: torch.Generator) -> None:
        began = time.perf_counter()
        losses: list[Tensor] = []
        counts: list[Tensor] = []
        batches = self._batches(chance)
        for batch in batches:
            slopes = all_reduce_gradients(
                self._gradients(batch), self.world, counts=batch.counts_in_loss
            )
            optimizer_step(self.state, slopes)
            losses.append(slopes.loss)
            counts.append(slopes.weight)
            self.edges_seen += batch.graph.adjacency.nnz
        self.wait_seconds += batches.wait_seconds
        self.step_seconds += time.perf_counter() - began
        if losses:
            weight = torch.stack(counts)
            self.state.record_loss(
                (weight * torch.stack(losses)).sum(0)
                / weight.sum(0).clamp(min=MIN_WEIGHT)
            )

    def _batches(self, chance: torch.Generator) -> Prefetch[Batch]:
        """The batches of an epoch, at hand on the device or made while others learn."""
        if self._cache is not None:
            return Prefetch(
                local_batches(self._cache.drawn(chance), self.world), depth=0
            )
        drawn = self._shared.lazy_batches(self.graph, self.roles.train, chance)
        return Prefetch(to_device_async(local_batches(drawn, self.world), self.device))

    @property
    def _shared(self) -> Sampler:
        return self.batching.per_process(self.world.size)

    @cached_property
    def _cache(self) -> BatchCache | None:
        return BatchCache.of(self._shared, self.graph, self.roles.train, self.device)

    def _gradients(self, batch: Batch) -> Gradients:
        stack, graph = self.state.stack, batch.graph
        weight = self.roles.weight(graph.ids, batch.loss_weight)
        metric = self.task.metric
        return compute_gradients(
            stack, graph, weight, stack.sparse_products(graph), metric
        )

    def _score(
        self, ids: Ids, chance: torch.Generator, *, best: bool
    ) -> Float[Tensor, "runs nodes classes"]:
        """Scores of some nodes, by the present weights or the best."""
        runs, graph = self.state.stack.num_runs, self.graph
        place = "cpu" if best else self.device
        scores = torch.empty(runs, graph.num_nodes, graph.num_classes, device=place)
        drawn = chance.get_state()
        try:
            state = copy_to_cpu(self.state) if self.score_on_cpu else self.state
            predict_into(state, self._inference_batches(ids, chance), scores, best=best)
        except torch.OutOfMemoryError:
            if self.score_on_cpu:
                raise
            self.score_on_cpu = True
            vars(self).pop("_whole", None)
            chance.set_state(drawn)
            return self._score(ids, chance, best=best)
        return scores[:, ids.to(place)]

    def _inference_batches(self, ids: Ids, chance: torch.Generator) -> Iterator[Graph]:
        if self.state.stack.row_wise:
            yield from inference_rows(self.state, self.graph, ids)
            return
        for piece in self.batching.inference_batches(self.graph, chance):
            whole = piece is self.graph and not self.score_on_cpu
            yield self._whole if whole else piece

    @cached_property
    def _whole(self) -> Graph:
        return self.graph.to(self.device)
