"""Train, validation and test splits of nodes, and random splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int, Int8
from torch import Tensor

from unalike.data.adjacency import Ids
from unalike.errors import UserError

PARTS = ("train", "valid", "test")


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Three disjoint sets of node ids."""

    train: Int[Tensor, " train"]
    valid: Int[Tensor, " valid"]
    test: Int[Tensor, " test"]

    def __repr__(self) -> str:
        sizes = (f"{part} {len(getattr(self, part)):,}" for part in PARTS)
        return f"Split({', '.join(sizes)})"

    @classmethod
    def from_codes(cls, codes: Int[Tensor, " nodes"]) -> Split:
        """A split from a code per node: 0 train, 1 valid, 2 test, -1 none."""
        return cls(*((codes == part).nonzero()[:, 0] for part in range(len(PARTS))))

    def to_codes(self, num_nodes: int) -> Int8[Tensor, " nodes"]:
        """A code per node, as `from_codes` reads it."""
        codes = torch.full((num_nodes,), -1, dtype=torch.int8)
        for part, ids in enumerate((self.train, self.valid, self.test)):
            codes[ids] = part
        return codes


def random_splits(
    labels: Int[Tensor, " nodes"],
    *,
    count: int,
    seed: int = 0,
    train: float = 0.5,
    valid: float = 0.25,
) -> list[Split]:
    """Random splits of the labelled nodes, sampled in sequence from one seed.

    NumPy's legacy generator and the rounding of sizes are those of the paper's code, so
    that its random splits are reproduced.
    """
    if not (train > 0 and valid >= 0 and train + valid <= 1):
        raise UserError(
            f"Fractions of train {train} and valid {valid} are not possible."
        )
    rng = np.random.RandomState(seed)
    labelled = (labels >= 0).nonzero()[:, 0]
    return [
        split_by_order(labelled, rng.permutation(len(labelled)), train, valid)
        for _ in range(count)
    ]


def split_by_order(
    labelled: Ids, order: np.ndarray, train: float, valid: float
) -> Split:
    """A split of the labelled ids in the given order: train, then valid, then test."""
    sizes = [int(train * len(order)), int(valid * len(order))]
    sizes.append(len(order) - sum(sizes))
    return Split(*labelled[torch.from_numpy(order)].split(sizes))


def temporal_split(
    times: np.ndarray, *, train: float = 0.5, valid: float = 0.25
) -> Split:
    """A split by time: train, valid, then test; equal times together, NaN in none."""
    ordered = np.sort(times[~np.isnan(times)])
    ends = [int(fraction * len(ordered)) - 1 for fraction in (train, train + valid)]
    if not len(ordered) or ends[0] < 0:
        raise UserError("Too few nodes have a time and a label for a split by time.")
    last_train, last_valid = ordered[ends]
    is_valid = (times > last_train) & (times <= last_valid)
    parts = (times <= last_train, is_valid, times > last_valid)
    if not all(part.any() for part in parts):
        raise UserError(
            "Too few different times for a split by time: "
            + ", ".join(
                f"{name} {part.sum()}" for name, part in zip(PARTS, parts, strict=True)
            )
            + " nodes."
        )
    return Split(*(torch.from_numpy(part.nonzero()[0]) for part in parts))


def stratified_holdout(
    ids: Ids, labels: Int[Tensor, " nodes"], fraction: float, generator: torch.Generator
) -> tuple[Ids, Ids]:
    """Split ids in two; the second part has about this fraction of every class.

    Of a class with several nodes at least one is in the second part, unless the
    fraction is 0.
    """
    ids = ids[torch.randperm(len(ids), generator=generator)]
    classes = labels[ids]
    ids = ids[classes.argsort(stable=True)]
    sizes = classes.bincount()
    rank = torch.arange(len(ids)) - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    held_out = (fraction * sizes).round().clamp(min=1 if fraction > 0 else 0)
    in_second = rank < held_out.where(sizes > 1, 0).repeat_interleave(sizes)
    return ids[~in_second], ids[in_second]


def stack_codes(splits: Sequence[Split], num_nodes: int) -> np.ndarray:
    """All splits as one array of codes, one row per split."""
    rows = [split.to_codes(num_nodes).numpy() for split in splits]
    return np.stack(rows) if rows else np.zeros((0, num_nodes), np.int8)
