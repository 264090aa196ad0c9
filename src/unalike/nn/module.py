"""Network: tables that meet sparse rows, and what follows them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.data.memmap import empty_weights
from unalike.nn.dropout import Dropout
from unalike.nn.linear import DeferredLinear, TensorOrDeferred, value
from unalike.nn.normalized_adjacency import GCNNorm

# Network: tables that meet sparse rows, and what follows them.


SparseProducts = dict[str, Float[Tensor, "nodes hidden"]]
"""Products of sparse inputs with the tables of the same name, and their offsets."""

RNG_CHUNK = 2**20
"""Numbers that are drawn together where they are not kept."""


@dataclass(frozen=True)
class SparseWeightSpec:
    """The size of a first layer's weight: a row per input, and mostly an offset."""

    inputs: int
    width: int
    fan_in: int | None = None
    """Inputs that add up, where another table shares the sum."""
    offset: bool = field(default=True, kw_only=True)
    """Is an offset added to the product?"""
    glorot: bool = field(default=False, kw_only=True)
    """Does the weight begin as that of a graph convolution, not of `nn.Linear`?"""
    held: range | None = field(default=None, kw_only=True)
    """The rows that are kept here, where other processes keep the rest."""

    def draw(self) -> tuple[nn.Parameter, nn.Parameter | None]:
        """Weight and offset like those of `nn.Linear`: within 1 / sqrt(inputs)."""
        bound = 1 / math.sqrt(max(1, self.fan_in or self.inputs))
        weight = (
            glorot_uniform(self.inputs, self.width)
            if self.glorot
            else uniform_shard(bound, self.inputs, self.width, self.held)
        )
        return weight, uniform(bound, self.width) if self.offset else None


def glorot_uniform(inputs: int, width: int) -> nn.Parameter:
    """A weight within sqrt(6 / (inputs + width)) (Glorot and Bengio 2010)."""
    return uniform(math.sqrt(6 / (inputs + width)), inputs, width)


def uniform(bound: float, *shape: int) -> nn.Parameter:
    """Numbers drawn from between -bound and bound."""
    return nn.Parameter(empty_weights(shape).uniform_(-bound, bound))


def uniform_shard(
    bound: float, rows: int, width: int, held: range | None
) -> nn.Parameter:
    """Some rows of what `uniform` would draw; chance goes on as if all were drawn."""
    kept = range(rows) if held is None else held
    _advance_rng(kept.start * width)
    weight = uniform(bound, len(kept), width)
    _advance_rng((rows - kept.stop) * width)
    return weight


def _advance_rng(count: int) -> None:
    """Draw numbers and let them go, a few at a time."""
    for begin in range(0, count, RNG_CHUNK):
        torch.empty(min(RNG_CHUNK, count - begin)).uniform_()


class SparseInputModule(nn.Module, ABC):
    """A network whose sparse inputs meet tables, and an ordinary module after that.

    The training loop takes the products of sparse rows and tables itself, because it
    can take them once for many purposes and move a large table while it gathers its
    gradient. Dense inputs are the business of the module.
    """

    row_wise: ClassVar[bool] = True
    """Do scores of a node depend on its own row alone, when not training?"""
    only_tables: bool = False
    """Do they depend on the products of its tables alone, whatever else a batch has?"""

    def __init__(self, tables: dict[str, SparseWeightSpec]) -> None:
        super().__init__()
        drawn = {name: table.draw() for name, table in tables.items()}
        self.tables = nn.ParameterDict({name: pair[0] for name, pair in drawn.items()})
        self.offsets = nn.ParameterDict(
            {name: pair[1] for name, pair in drawn.items() if pair[1] is not None}
        )

    def fix(self, **numbers: float | list[float]) -> None:
        """Hold numbers that are told and not learned, of which every run has its own.

        The options tell them again, so that no file of weights holds them.
        """
        for name, told in numbers.items():
            exact = torch.tensor(told, dtype=torch.float64, device="cpu")
            self.register_buffer(name, exact, persistent=False)

    @abstractmethod
    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        """The sparse matrix that multiplies each table."""

    @abstractmethod
    def forward(
        self, batch: Graph, first: SparseProducts
    ) -> Float[Tensor, "nodes classes"]:
        """The scores of a batch, from the products of its sparse inputs."""

    @property
    def mixes_rows(self) -> bool:
        """Do the scores of a row depend on the other rows of its batch in training?"""
        normed = any(isinstance(part, nn.BatchNorm1d) for part in self.modules())
        return normed or not self.row_wise

    def products(self, batch: Graph) -> SparseProducts:
        """What the first layer makes of the sparse inputs of a batch."""
        first = {
            name: matrix @ self.tables[name]
            for name, matrix in self.inputs(batch).items()
        }
        for name, offset in self.offsets.items():
            first[name] = first[name] + offset
        return first

    def score(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        """The scores of a batch, products included."""
        return self(batch, self.products(batch))


# Entry: the first linear map of the features, dense or sparse.


NAME = "features"


class InputLinear(nn.Module):
    """A table of the network for sparse features, its own weight for dense ones.

    Only dense features can be dropped: the loop takes the product of sparse ones.
    """

    offset: nn.Parameter | None

    def __init__(
        self, graph: Graph, table: SparseWeightSpec, dropout: float | None = None
    ) -> None:
        super().__init__()
        self.sparse = isinstance(graph.features, Adjacency)
        if not self.sparse:
            self.weight, offset = table.draw()
            self.register_parameter("offset", offset)
            self.drop = nn.Identity() if dropout is None else Dropout(dropout)
        self.tables = {NAME: table} if self.sparse else {}

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        """The sparse features, for the table of the network."""
        features = batch.features
        return {NAME: features} if isinstance(features, Adjacency) else {}

    def forward(self, batch: Graph, first: SparseProducts) -> TensorOrDeferred:
        if self.sparse:
            return first[NAME]
        rows = self.drop(batch.features.to_dense().to(self.weight.dtype))
        return DeferredLinear(rows, self.weight, self.offset)


# Message passing: networks that map the features, then let them flow along edges.


MAX_FEATURES_PER_HIDDEN = 4
"""Features for each hidden number up to which they are propagated themselves."""


class MessagePassingModule(SparseInputModule):
    """A network whose scores of a node depend on the nodes around it."""

    row_wise = False

    def __init__(
        self, graph: Graph, table: SparseWeightSpec, dropout: float | None = None
    ) -> None:
        entry = InputLinear(graph, table, dropout)
        super().__init__(entry.tables)
        self.entry = entry

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        return self.entry.inputs(batch)

    def enter(
        self, batch: Graph, first: SparseProducts
    ) -> Float[Tensor, "nodes hidden"]:
        """The first linear map of the features."""
        return value(self.entry(batch, first))

    def enter_flown(
        self,
        batch: Graph,
        first: SparseProducts,
        adjacency: GCNNorm,
        hops: Sequence[int],
    ) -> Float[Tensor, "nodes hidden"]:
        """The first linear map in blocks of columns, each propagated some times.

        Â (x W + b) is (Â x) W + (Â 1) b, and Â x has nothing to learn: dense features
        that are not many are propagated once, and no epoch does it again.
        """
        hidden = self.entry(batch, first)
        if not isinstance(hidden, DeferredLinear) or not self._flow_first(batch):
            return propagate_blocks(adjacency, value(hidden), hops)
        weights = self.entry.weight.chunk(len(hops), 1)
        found = [
            adjacency.flown(batch.features.to_dense(), count).to(weight.dtype) @ weight
            for count, weight in zip(hops, weights, strict=True)
        ]
        if self.entry.offset is not None:
            offsets = self.entry.offset.chunk(len(hops))
            ones = hidden.rows.new_ones(batch.num_nodes, 1)
            found = [
                block + adjacency.power(count, ones) * offset
                for block, count, offset in zip(found, hops, offsets, strict=True)
            ]
        return torch.cat(found, 1)

    def _flow_first(self, batch: Graph) -> bool:
        """Are features that nothing drops few enough to flow instead of the hidden?"""
        few = batch.num_features <= MAX_FEATURES_PER_HIDDEN * self.entry.weight.shape[1]
        return few and isinstance(self.entry.drop, nn.Identity)


def propagate_blocks(
    adjacency: GCNNorm, x: Float[Tensor, "nodes blocks"], hops: Sequence[int]
) -> Float[Tensor, "nodes blocks"]:
    """Each block of columns, propagated as often as its number says."""
    blocks = x.chunk(len(hops), 1)
    return torch.cat(
        [adjacency.power(count, b) for count, b in zip(hops, blocks, strict=True)], 1
    )
