"""Mini-batch epochs, asynchronous copies to the GPU, cache of repeated batches."""

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
from unalike.errors import UserError
from unalike.parallel import Prefetch
from unalike.samplers.base import Batch, LazyBatch, Sampler, shuffled
from unalike.system import free_memory
from unalike.training.distributed import World
from unalike.training.gradient_averaging import (
    all_reduce_gradients,
    average_buffers,
    local_batches,
)
from unalike.training.masks import SplitMasks, uses_batch_statistics
from unalike.training.state import State
from unalike.training.step import (
    Gradients,
    compute_gradients,
    copy_to_cpu,
    inference_rows,
    optimizer_step,
    predict_into,
)


def to_device_async(batches: Iterator[Batch], device: torch.device) -> Iterator[Batch]:
    """The same batches on the device, copied from pinned memory on a side stream."""
    if device.type != "cuda":
        yield from batches
        return
    main, side = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    for batch in batches:
        with torch.cuda.stream(side):
            on_gpu = batch.graph.labels.is_cuda
            graph = batch.graph if on_gpu else batch.graph.pin_memory().to(device)
            weight = batch.loss_weight.to(device)
            side.synchronize()
        for tensor in (*_tensors(graph), weight):
            tensor.record_stream(main)
        yield replace(batch, graph=graph, loss_weight=weight)


def _tensors(graph: Graph) -> Iterator[Tensor]:
    for part in (graph.adjacency, graph.features, graph.labels, graph.ids):
        arrays = [part] if isinstance(part, Tensor) else part.arrays
        yield from (array for array in arrays if isinstance(array, Tensor))


MAX_GRAPH_SHARE = 0.1
"""Fraction of free memory that a graph may take if its batches are cached."""
MIN_FREE_SHARE = 0.5
"""Fraction of it that stays free for what methods cache with each batch."""


@dataclass(frozen=True, eq=False)
class BatchCache:
    """Batches that are built and copied to the device once, while memory lasts."""

    lazy_batches: list[LazyBatch]
    device: torch.device
    min_free_bytes: float
    """Free memory under which no further batch is cached."""
    cached: dict[int, Batch] = field(default_factory=dict)

    @classmethod
    def of(
        cls, batching: Sampler, graph: Graph, train: Ids, device: torch.device
    ) -> BatchCache | None:
        """The cache of a sampler, if its batches repeat and fit into memory."""
        batches = batching.fixed_batches(graph, train)
        free = free_memory(device)
        if batches is None or graph.nbytes > MAX_GRAPH_SHARE * free:
            return None
        return cls(batches, device, MIN_FREE_SHARE * free)

    def epoch(self, generator: torch.Generator) -> Iterator[LazyBatch]:
        """The batches of an epoch, in the order in which the sampler has them."""
        indices = range(len(self.lazy_batches))
        return shuffled([partial(self.batch, index) for index in indices], generator)

    def batch(self, index: int) -> Batch:
        if index in self.cached:
            return self.cached[index]
        batch = self.lazy_batches[index]()
        graph, weight = batch.graph.to(self.device), batch.loss_weight.to(self.device)
        batch = replace(batch, graph=graph, loss_weight=weight)
        if free_memory(self.device) > self.min_free_bytes:
            self.cached[index] = batch
        return batch


@dataclass(frozen=True, eq=False)
class ScoreRows:
    """Rows of a matrix of scores: one for each of some nodes, the last for all others.

    A subgraph scores more nodes than are needed.
    """

    ids: Ids
    """The nodes that are needed."""
    of_node: Ids
    """The row of every node of the graph."""
    of_id: Ids
    """The rows of `ids`."""
    count: int

    @classmethod
    def of(cls, ids: Ids, num_nodes: int, device: torch.device) -> ScoreRows:
        nodes, index = ids.unique(return_inverse=True)
        of_node = torch.full((num_nodes,), len(nodes))
        of_node[nodes] = torch.arange(len(nodes))
        return cls(ids, of_node.to(device), index.to(device), len(nodes) + 1)


@dataclass(eq=False)
class MiniBatchEpochs:
    """Mini-batch epochs; all runs of a stack train on the same batches.

    The batches depend on the seed of the first run and the number of the epoch alone,
    so that training resumes from a checkpoint as if it had never stopped. A run
    without a train node in a batch takes a step with gradient 0.
    """

    state: State
    graph: Graph
    task: Task
    """The task of the first run."""
    masks: SplitMasks
    batching: Sampler
    device: torch.device
    world: World = field(default_factory=World)
    """Data parallel processes, each of which has its own batch in every step."""
    wait_seconds: float = 0.0
    """Seconds spent waiting for batches."""
    step_seconds: float = 0.0
    """Seconds spent in steps, waiting included."""
    edges_seen: int = 0
    """Entries of the adjacency that were processed in steps."""
    score_on_cpu: bool = False
    """Has inference on the GPU run out of memory?"""

    def run_epoch(self) -> None:
        """Train and evaluate one more epoch."""
        generator, state, masks = self._generator(), self.state, self.masks
        seeds = torch.randint(2**62, (state.epoch + 1,), generator=generator)
        seed = int(seeds[-1])
        if self.world.size > 1:
            # Each process has its own dropout, also after a checkpoint.
            torch.manual_seed(seed + 1 + self.world.rank)
        self._train_steps(generator.manual_seed(seed))
        average_buffers(state.stack.buffers.values(), self.world)
        for weight in state.stack.sparse_weights.values():
            weight.catch_up(state.last_step())
        scores = self._predict(self._valid_rows, generator, best=False)
        labels = self.graph.labels[masks.valid.to(self.graph.labels.device)]
        eval_weight = masks.eval_weight[masks.split_of_run]
        score = self.task.metric.score(scores, labels.to(self.device), eval_weight)
        self.world.broadcast(score)
        state.record_score(score)
        state.save_best()
        state.epoch += 1

    @property
    def progress_note(self) -> str:
        """Throughput, and the fraction of the time spent waiting for batches."""
        speed = self.edges_seen / max(self.step_seconds, 1e-9) / 1e6
        waiting = self.wait_seconds / max(self.step_seconds, 1e-9)
        where = ", scored in main memory" if self.score_on_cpu else ""
        return f" {speed:,.1f} M edges/s, {waiting:.0%} waiting for them{where}"

    def score(self) -> Float[Tensor, "runs nodes classes"]:
        """Scores of all nodes by the best weights of each run."""
        nodes = self.graph.num_nodes
        rows = ScoreRows.of(torch.arange(nodes), nodes, torch.device("cpu"))
        return self._predict(rows, self._generator(), best=True)

    def _generator(self) -> torch.Generator:
        return torch.Generator().manual_seed(self.task.seed)

    def _train_steps(self, generator: torch.Generator) -> None:
        start = time.perf_counter()
        losses: list[Tensor] = []
        weights: list[Tensor] = []
        batches = self._batches(generator)
        for batch in batches:
            gradients = all_reduce_gradients(
                self._gradients(batch), self.world, counts=batch.counts_in_loss
            )
            optimizer_step(self.state, gradients)
            losses.append(gradients.loss)
            weights.append(gradients.weight)
            self.edges_seen += batch.graph.adjacency.nnz
        self.wait_seconds += batches.wait_seconds
        self.step_seconds += time.perf_counter() - start
        if losses:
            weight = torch.stack(weights)
            total = (weight * torch.stack(losses)).sum(0)
            self.state.record_loss(total / weight.sum(0).clamp(min=MIN_WEIGHT))

    def _batches(self, generator: torch.Generator) -> Prefetch[Batch]:
        """The batches of an epoch, cached on the device or built in the background."""
        if self._cache is not None:
            cached = self._cache.epoch(generator)
            return Prefetch(local_batches(cached, self.world), depth=0)
        lazy = self._sampler.lazy_batches(self.graph, self.masks.train, generator)
        return Prefetch(to_device_async(local_batches(lazy, self.world), self.device))

    @property
    def _sampler(self) -> Sampler:
        return self.batching.per_process(self.world.size)

    @cached_property
    def _cache(self) -> BatchCache | None:
        return BatchCache.of(self._sampler, self.graph, self.masks.train, self.device)

    def _gradients(self, batch: Batch) -> Gradients:
        stack, graph = self.state.stack, batch.graph
        if graph.num_nodes == 1 and uses_batch_statistics(stack.module):
            raise UserError(
                "A batch has a single node, and batch norm needs two; choose larger "
                "batches or a method without batch norm."
            )
        weight = self.masks.weight(graph.ids, batch.loss_weight)
        products = stack.sparse_products(graph)
        return compute_gradients(self.state, graph, weight, products, self.task.metric)

    def _predict(
        self, rows: ScoreRows, generator: torch.Generator, *, best: bool
    ) -> Float[Tensor, "runs nodes classes"]:
        """Logits of some nodes by the current or the best weights.

        If the GPU runs out of memory, the CPU computes these and all later ones.
        """
        runs, graph = self.state.stack.num_runs, self.graph
        size = (runs, rows.count, graph.num_classes)
        scores = torch.empty(size, device=rows.of_node.device)
        before = generator.get_state()
        try:
            state = copy_to_cpu(self.state) if self.score_on_cpu else self.state
            batches = self._inference_batches(rows.ids, generator)
            predict_into(state, batches, scores, best=best, row_of_node=rows.of_node)
        except torch.OutOfMemoryError:
            if self.score_on_cpu:
                raise
            self.score_on_cpu = True
            vars(self).pop("_graph_on_device", None)
            generator.set_state(before)
            return self._predict(rows, generator, best=best)
        return scores[:, rows.of_id]

    def _inference_batches(
        self, ids: Ids, generator: torch.Generator
    ) -> Iterator[Graph]:
        if self.state.stack.row_wise:
            yield from inference_rows(self.state, self.graph, ids)
            return
        for batch in self.batching.inference_batches(self.graph, generator):
            full_graph = batch is self.graph and not self.score_on_cpu
            yield self._graph_on_device if full_graph else batch

    @cached_property
    def _valid_rows(self) -> ScoreRows:
        return ScoreRows.of(self.masks.valid, self.graph.num_nodes, self.device)

    @cached_property
    def _graph_on_device(self) -> Graph:
        return self.graph.to(self.device)
