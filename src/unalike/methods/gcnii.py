"""GCNII: deep GCN with initial residual and identity mapping."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod, with_dense_features
from unalike.nn.activation_checkpointing import Checkpointed
from unalike.nn.init import glorot_uniform, register_constants
from unalike.nn.linear import Dropout, apply_dropout
from unalike.nn.norm import LinearNormActDrop, update_running_stats
from unalike.nn.normalized_adjacency import GCNNorm
from unalike.nn.sparse_linear import InputLinear
from unalike.system import free_memory

BYTES_PER_ACTIVATION = 16
"""Bytes stored for the backward pass, for each hidden unit of a node and layer."""
MEMORY_SHARE = 0.7
"""Fraction of free memory above which activations are recomputed, not stored."""


@dataclass(frozen=True, kw_only=True)
class GCNII(MessagePassingMethod):
    """x = (1 − β) u + β u W with u = (1 − α) Â x + α x₀ and β = ln(θ / layer + 1)."""

    paper = "Chen et al. 2020, https://arxiv.org/abs/2007.02133"
    suits = "neighbours agree and many layers are wanted"
    stackable_options = MessagePassingMethod.stackable_options | {"alpha", "theta"}

    hidden: int = 64
    """Width of every hidden layer."""
    layers: int = 2
    """Graph convolutions; the paper tries 2, 8, 16, 32 and 64."""
    dropout: float = 0.5
    """Fraction of features and hidden units dropped in training."""
    alpha: float = 0.1
    """Weight α of the initial residual x₀; the paper tries .1, .2 and .5."""
    theta: float = 0.5
    """θ of the identity mapping; the paper tries .5, 1 and 1.5."""
    batch_norm: bool = True
    """Batch norm after each convolution; Chen et al. have none."""
    drop_features: bool = True
    """Drop features too, as the paper's code does; sparse ones are made dense."""

    def prepare(self, graph: Graph) -> Graph:
        return with_dense_features(graph) if self.drop_features else graph

    def build_module(self, graph: Graph) -> nn.Module:
        return GCNIIModule(self, graph)


class GCNIIModule(nn.Module):
    """x_l = relu(norm(u ((1 − β) I + β W_l))) with u = (1 − α) Â x_{l-1} + α x₀."""

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
        backward = self.training and torch.is_grad_enabled()
        checkpointed = backward and self.should_checkpoint(x0)
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
            params = [self.weights[layer] for layer in layers]
            params += [p for norm in norms for p in norm.parameters()]
            masks = [self.dropout.sample_mask(x) for _ in layers]
            x, batch_stats = Checkpointed.apply(
                partial(self.run_segment, a_hat, layers),
                2 + len(params),
                *(x, residual, *params),
                *(self.alpha, self.betas, self.dropout.p, *masks),
            )
            for norm, mean_var in zip(norms, batch_stats, strict=False):
                update_running_stats(norm, *mean_var)
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
        *params, alpha, betas, p = others[: -len(layers)]
        masks, weights = others[-len(layers) :], params[: len(layers)]
        norm_params = params[len(layers) :]
        batch_stats = []
        for index, layer in enumerate(layers):
            x = apply_dropout(x, masks[index], p)
            u = a_hat.appnp_step(residual, alpha, x)
            x = u @ identity_mapped_weight(weights[index], betas[layer])
            if norm_params:
                # Batch norm in bf16 has no gradient under vmap on a GPU.
                exact = x.to(torch.promote_types(x.dtype, torch.float32))
                batch_stats.append(torch.stack(torch.var_mean(exact.detach(), 0)[::-1]))
                gain, bias = norm_params[2 * index : 2 * index + 2]
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
            needed = BYTES_PER_ACTIVATION * x0.numel() * len(self.weights)
            self.checkpointed = needed > MEMORY_SHARE * free_memory(x0.device)
        return self.checkpointed


def identity_mapped_weight(
    weight: Float[Tensor, "hidden hidden"], beta: Float[Tensor, ""]
) -> Float[Tensor, "hidden hidden"]:
    """(1 − β) I + β W: u times this is (1 − β) u + β u W."""
    one = torch.eye(len(weight), dtype=weight.dtype, device=weight.device)
    return torch.lerp(one, weight, beta.to(weight.dtype))


def segments(count: int) -> list[range]:
    """Segments of activation checkpointing, about two times the square root of layers.

    The first layer is alone: its input may have other strides than that of the others,
    and dropout masks are sampled in memory order.
    """
    size = max(1, round(math.sqrt(count) / 2))
    bounds = [0, *range(1, count, size), count]
    return [range(*pair) for pair in pairwise(bounds)]
