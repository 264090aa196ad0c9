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
from unalike.nn.init import glorot_uniform, register_constants
from unalike.nn.norm import LinearNormActDrop, update_running_stats
from unalike.nn.normalized_adjacency import GCNNorm
from unalike.nn.recompute import Checkpointed
from unalike.nn.sparse_linear import InputLinear
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
    stackable_options = MessagePassingMethod.stackable_options | {"alpha", "theta"}

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

    def build_module(self, graph: Graph) -> nn.Module:
        return GCNIIModule(self, graph)


class GCNIIModule(nn.Module):
    """Convolutions with an initial residual and an identity mapping."""

    alpha: Float[Tensor, ""]
    betas: Float[Tensor, " layers"]

    def __init__(self, o: GCNII, graph: Graph) -> None:
        super().__init__()
        dropout = o.dropout if o.drop_features else None
        self.first = InputLinear("features", graph, o.hidden, dropout=dropout)
        norm = nn.BatchNorm1d if o.batch_norm else nn.Identity
        self.weights = nn.ParameterList(
            glorot_uniform(o.hidden, o.hidden) for _ in range(o.layers)
        )
        self.blocks = nn.ModuleList(
            LinearNormActDrop(norm(o.hidden), o.dropout) for _ in range(o.layers)
        )
        self.dropout = Dropout(o.dropout)
        self.final = nn.Linear(o.hidden, graph.num_classes)
        betas = [math.log(o.theta / layer + 1) for layer in range(1, o.layers + 1)]
        register_constants(self, alpha=o.alpha, betas=betas)
        self.checkpointed: bool | None = None

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        a_hat = GCNNorm.of(batch.adjacency)
        x0 = torch.relu(self.first(batch.features))
        learns = self.training and torch.is_grad_enabled()
        checkpointed = learns and self.should_checkpoint(x0)
        layers = self.checkpointed_layers if checkpointed else self.all_layers
        return self.final(layers(a_hat, x0))

    def all_layers(
        self, a_hat: GCNNorm, x0: Float[Tensor, "nodes hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        """All layers; every activation is stored for the backward pass."""
        x, residual = self.dropout(x0), self.initial_residual(x0)
        layers = zip(self.weights, self.betas, self.blocks, strict=True)
        for weight, beta, block in layers:
            u = a_hat.appnp_step(residual, self.alpha, x)  # (1 − α) Â x + α x₀
            x = block(u, identity_mapped_weight(weight, beta))
        return x

    def checkpointed_layers(
        self, a_hat: GCNNorm, x0: Float[Tensor, "nodes hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        """All layers with activation checkpointing: a few are recomputed at a time."""
        x, residual = x0, self.initial_residual(x0)
        for layers in segments(len(self.weights)):
            norms: list[Any] = [self.blocks[layer].norm for layer in layers]
            learned = [self.weights[layer] for layer in layers]
            learned += [p for norm in norms for p in norm.parameters()]
            kept = [self.dropout.sample_mask(x) for _ in layers]
            x, batch_stats = Checkpointed.apply(
                partial(self.run_segment, a_hat, layers),
                2 + len(learned),
                *(x, residual, *learned),
                *(self.alpha, self.betas, self.dropout.p, *kept),
            )
            for norm, seen in zip(norms, batch_stats, strict=False):
                update_running_stats(norm, *seen)
        return self.dropout(x)

    def run_segment(
        self,
        a_hat: GCNNorm,
        layers: range,
        x: Float[Tensor, "nodes hidden"],
        residual: Float[Tensor, "nodes hidden"],
        *others: Tensor,
    ) -> tuple[Float[Tensor, "nodes hidden"], Float[Tensor, "layers 2 hidden"]]:
        """Some layers as a pure function, and the batch statistics of each."""
        *learned, alpha, betas, rate = others[: -len(layers)]
        weights, normed = learned[: len(layers)], learned[len(layers) :]
        batch_stats = []
        for place, layer in enumerate(layers):
            into = apply_dropout(x, others[place - len(layers)], rate)
            u = a_hat.appnp_step(residual, alpha, into)
            x = u @ identity_mapped_weight(weights[place], betas[layer])
            if normed:
                # A stack's batch norm in bf16 has no gradient on a card.
                exact = x.to(torch.promote_types(x.dtype, torch.float32))
                batch_stats.append(torch.stack(torch.var_mean(exact.detach(), 0)[::-1]))
                gain, bias = normed[2 * place : 2 * place + 2]
                exact = F.batch_norm(exact, None, None, gain, bias, training=True)
                x = exact.to(x.dtype)
            x = torch.relu(x)
        return x, torch.stack(batch_stats) if batch_stats else x.new_zeros(
            0, 2, x.shape[1]
        )

    def initial_residual(
        self, x0: Float[Tensor, "nodes hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        """α x₀, which every layer adds."""
        return self.alpha.to(x0.dtype) * x0

    def should_checkpoint(self, x0: Float[Tensor, "nodes hidden"]) -> bool:
        """Would the activations of all layers exceed memory? Computed once."""
        if self.checkpointed is None:
            needed = BYTES_KEPT * x0.numel() * len(self.weights)
            self.checkpointed = needed > MEMORY_SHARE * free_memory(x0.device)
        return self.checkpointed


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
