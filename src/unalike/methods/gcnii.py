"""GCNII: deep graph convolutions that never forget where they began."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.errors import UserError
from unalike.methods.base import MessagePassingMethod
from unalike.nn.dropout import Dropout, apply_dropout
from unalike.nn.module import (
    MessagePassingModule,
    SparseInputModule,
    SparseProducts,
    SparseWeightSpec,
    glorot_uniform,
)
from unalike.nn.norm import NormActDrop, update_running_stats
from unalike.nn.normalized_adjacency import GCNNorm
from unalike.nn.recompute import Checkpointed
from unalike.system import free_memory

MOST_DENSE_NUMBERS = 2**32
"""Features that would be larger than this are not made dense."""
BYTES_KEPT = 16
"""For gradients, of each hidden number in each layer."""
MEMORY_SHARE = 0.7
"""Of what is free: above this, little is kept and much computed twice."""


@dataclass(frozen=True, kw_only=True)
class GCNII(MessagePassingMethod):
    """u = (1 − α) Â x + α x₀, then (1 − β) u + β u W, with β = ln(θ / layer + 1)."""

    paper = "Chen et al. 2020, https://arxiv.org/abs/2007.02133"
    may_differ = MessagePassingMethod.may_differ | {"alpha", "theta"}

    hidden: int = 64
    """Width of every layer."""
    layers: int = 2
    """Convolutions; the paper tries 2, 8, 16, 32 and 64."""
    dropout: float = 0.5
    """Share of features and hidden numbers dropped while training."""
    alpha: float = 0.1
    """What the start counts for in every layer; the paper tries .1, .2 and .5."""
    theta: float = 0.5
    """What weights count for, less in later layers; the paper tries .5, 1 and 1.5."""
    batch_norm: bool = True
    """Batch norm after each convolution, which Chen et al. do without."""
    drop_features: bool = True
    """Drop features too, as the paper's program does; sparse ones are made dense."""

    def prepare(self, graph: Graph) -> Graph:
        if not self.drop_features or not isinstance(graph.features, Adjacency):
            return graph
        if math.prod(graph.features.shape) > MOST_DENSE_NUMBERS:
            raise UserError(
                f"Features of {graph.num_nodes} x {graph.num_features} are too many to "
                "be made dense; choose --no-drop-features."
            )
        return replace(graph, features=graph.features.to_dense())

    def network(self, graph: Graph) -> SparseInputModule:
        return _Network(self, graph)


class _Network(MessagePassingModule):
    alpha: Float[Tensor, ""]
    betas: Float[Tensor, " layers"]

    def __init__(self, of: GCNII, graph: Graph) -> None:
        table = SparseWeightSpec(graph.num_features, of.hidden)
        super().__init__(graph, table, of.dropout if of.drop_features else None)
        norm = nn.BatchNorm1d if of.batch_norm else nn.Identity
        self.weights = nn.ParameterList(
            glorot_uniform(of.hidden, of.hidden) for _ in range(of.layers)
        )
        self.bridges = nn.ModuleList(
            NormActDrop(norm(of.hidden), of.dropout) for _ in range(of.layers)
        )
        self.dropout = Dropout(of.dropout)
        self.final = nn.Linear(of.hidden, graph.num_classes)
        betas = [math.log(of.theta / layer + 1) for layer in range(1, of.layers + 1)]
        self.fix(alpha=of.alpha, betas=betas)
        self.sparing: bool | None = None

    def forward(
        self, batch: Graph, first: SparseProducts
    ) -> Float[Tensor, "nodes classes"]:
        adjacency = GCNNorm.of(batch.adjacency)
        start = torch.relu(self.enter(batch, first))
        learns = self.training and torch.is_grad_enabled()
        sparing = learns and self.is_short_of_memory(start)
        pass_ = self.pass_twice if sparing else self.pass_once
        return self.final(pass_(adjacency, start))

    def pass_once(
        self, adjacency: GCNNorm, start: Float[Tensor, "nodes hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        """All layers, with everything kept that gradients need."""
        x, share = self.dropout(start), self.share(start)
        layers = zip(self.weights, self.betas, self.bridges, strict=True)
        for weight, beta, bridge in layers:
            u = adjacency.back_to(share, self.alpha, x)
            x = bridge(u, into=identity_mapped_weight(weight, beta))
        return x

    def pass_twice(
        self, adjacency: GCNNorm, start: Float[Tensor, "nodes hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        """All layers, a few at a time; only what goes into those few is kept."""
        x, share = start, self.share(start)
        for layers in segments(len(self.weights)):
            norms: list[Any] = [self.bridges[layer].norm for layer in layers]
            learned = [self.weights[layer] for layer in layers]
            learned += [p for norm in norms for p in norm.parameters()]
            kept = [self.dropout.draw(x) for _ in layers]
            x, noted = Checkpointed.apply(
                partial(self.some_layers, adjacency, layers),
                2 + len(learned),
                *(x, share, *learned),
                *(self.alpha, self.betas, self.dropout.rate, *kept),
            )
            for norm, seen in zip(norms, noted, strict=False):
                update_running_stats(norm, *seen)
        return self.dropout(x)

    def some_layers(
        self,
        adjacency: GCNNorm,
        layers: range,
        x: Float[Tensor, "nodes hidden"],
        share: Float[Tensor, "nodes hidden"],
        *others: Tensor,
    ) -> tuple[Float[Tensor, "nodes hidden"], Float[Tensor, "layers 2 hidden"]]:
        """Layers as a pure function, and what batch norm saw in each."""
        *learned, alpha, betas, rate = others[: -len(layers)]
        weights, normed = learned[: len(layers)], learned[len(layers) :]
        noted = []
        for place, layer in enumerate(layers):
            into = apply_dropout(x, others[place - len(layers)], rate)
            u = adjacency.back_to(share, alpha, into)
            x = u @ identity_mapped_weight(weights[place], betas[layer])
            if normed:
                # A stack's batch norm in bf16 has no gradient on a card.
                exact = x.to(torch.promote_types(x.dtype, torch.float32))
                noted.append(torch.stack(torch.var_mean(exact.detach(), 0)[::-1]))
                gain, offset = normed[2 * place : 2 * place + 2]
                exact = F.batch_norm(exact, None, None, gain, offset, training=True)
                x = exact.to(x.dtype)
            x = torch.relu(x)
        return x, torch.stack(noted) if noted else x.new_zeros(0, 2, x.shape[1])

    def share(
        self, start: Float[Tensor, "nodes hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        """α x₀, which every layer adds."""
        return self.alpha.to(start.dtype) * start

    def is_short_of_memory(self, start: Float[Tensor, "nodes hidden"]) -> bool:
        """Would all layers take too much memory? Asked once, before they take any."""
        if self.sparing is None:
            needed = BYTES_KEPT * start.numel() * len(self.weights)
            self.sparing = needed > MEMORY_SHARE * free_memory(start.device)
        return self.sparing


def identity_mapped_weight(
    weight: Float[Tensor, "hidden hidden"], beta: Float[Tensor, ""]
) -> Float[Tensor, "hidden hidden"]:
    """(1 − β) I + β W, of which one product takes the place of two and a sum."""
    one = torch.eye(len(weight), dtype=weight.dtype, device=weight.device)
    return torch.lerp(one, weight, beta.to(weight.dtype))


def segments(count: int) -> list[range]:
    """Layers that are passed at once: few are recomputed, and few inputs are kept.

    The first stands alone, because what goes into it may lie otherwise in memory than
    what goes into the others, and chance is drawn in the order of memory.
    """
    size = max(1, round(math.sqrt(count) / 2))
    bounds = [0, *range(1, count, size), count]
    return [range(*pair) for pair in pairwise(bounds)]
