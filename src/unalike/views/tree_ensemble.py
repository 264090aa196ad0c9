"""Gradient-boosted trees as plain arrays: from LightGBM or scikit-learn, to tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, no_type_check

import numba
import numpy as np
import torch
from torch import Tensor

from unalike.data.numba_utils import njit

LEAF = -1
"""The feature of a node without children."""
ROWS_AT_ONCE = 64
"""Rows that go through a tree before the next one, so that both stay in the cache."""


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """The sum of trees for each output, and its probabilities.

    A row goes to the left child of a node if its feature is at most the threshold.
    Children stand behind their parent, and trees one after another. Tree t belongs to
    output t % outputs; a single output is the log-odds of the second class. Field names
    are keys of model files.
    """

    root: np.ndarray
    """The first node of each tree."""
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    """What a leaf adds."""
    start: np.ndarray
    """The sum without any tree, by output."""
    classes: np.ndarray
    """The classes that the outputs stand for."""
    num_classes: np.ndarray
    """All classes; those without an output have probability 0."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The probability of each class for each row."""
        rows = np.ascontiguousarray(x, np.float32)
        sums = np.tile(self.start, (len(rows), 1))
        _add_leaves(rows, sums, self.root, self.value, *self._steps)
        if sums.shape[1] == 1:
            sums = np.concatenate([np.zeros_like(sums), sums], 1)
        full = np.zeros((len(rows), int(self.num_classes)))
        full[:, self.classes] = torch.from_numpy(sums).softmax(1).numpy()
        return full

    @cached_property
    def _steps(self) -> tuple[np.ndarray, ...]:
        """The depth of each tree; feature, float32 threshold and both children of each
        node. A leaf leads to itself, so that all rows take as many steps."""
        node, leaf = np.arange(len(self.feature)), self.feature == LEAF
        children = np.stack([self.left, self.right], 1)
        children[leaf] = node[leaf, None]
        depth, level = np.zeros(len(node), np.int64), self.root[~leaf[self.root]]
        while len(level):
            below = children[level]
            depth[below] = depth[level, None] + 1
            level = below[~leaf[below]]
        # A float32 is at most a float64 if it is at most that rounded down.
        threshold = self.threshold.astype(np.float32)
        high = threshold > self.threshold
        threshold[high] = np.nextafter(threshold[high], np.float32(-np.inf))
        return (
            np.maximum.reduceat(depth, self.root),
            np.maximum(self.feature, 0).astype(np.uint32),
            threshold,
            children.astype(np.uint32).reshape(-1),
        )

    @classmethod
    def from_lightgbm(cls, booster: Any, size: int, num_classes: int) -> TreeEnsemble:
        """The first `size` rounds of a LightGBM booster for rows without NaN."""
        text = booster.model_to_string(num_iteration=size)
        trees = [_read_tree(block) for block in text.split("\nTree=")[1:]]
        return cls._of_nodes(
            {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]},
            [len(tree["feature"]) for tree in trees],
            start=np.zeros(1 if num_classes == 2 else num_classes),
            classes=np.arange(num_classes),
            num_classes=np.array(num_classes),
        )

    @classmethod
    def from_scikit_learn(cls, model: Any, size: int, num_classes: int) -> TreeEnsemble:
        """The first `size` rounds of a HistGradientBoostingClassifier."""
        parts = [tree.nodes for trees in model._predictors[:size] for tree in trees]
        nodes = np.concatenate(parts)
        leaf = nodes["is_leaf"].astype(bool)
        return cls._of_nodes(
            {
                "feature": np.where(leaf, LEAF, nodes["feature_idx"]).astype(np.int32),
                "threshold": np.where(leaf, 0.0, nodes["num_threshold"]),
                "left": np.where(leaf, 0, nodes["left"]).astype(np.int64),
                "right": np.where(leaf, 0, nodes["right"]).astype(np.int64),
                "value": np.where(leaf, nodes["value"], 0.0),
            },
            [len(part) for part in parts],
            start=np.array(model._baseline_prediction, np.float64).reshape(-1),
            classes=np.array(model.classes_, np.int64),
            num_classes=np.array(num_classes),
        )

    @classmethod
    def _of_nodes(
        cls, nodes: dict[str, np.ndarray], sizes: list[int], **others: np.ndarray
    ) -> TreeEnsemble:
        """Trees of some sizes, whose children are numbered within each tree."""
        root = np.cumsum([0, *sizes[:-1]])
        base = np.where(nodes["feature"] == LEAF, 0, np.repeat(root, sizes))
        children = {side: nodes[side] + base for side in ("left", "right")}
        return cls(root=root, **{**nodes, **children}, **others)

    def to_tensors(self) -> dict[str, Tensor]:
        return {
            each.name: torch.from_numpy(np.array(getattr(self, each.name)))
            for each in fields(self)
        }

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, Tensor], num_columns: int, num_classes: int
    ) -> TreeEnsemble:
        """The trees of a file, after checking sizes and indices."""
        types = {
            "feature": torch.int32,
            "threshold": torch.float64,
            "value": torch.float64,
            "start": torch.float64,
        }
        arrays = {}
        for each in fields(cls):
            tensor = tensors[each.name]
            dims = 0 if each.name == "num_classes" else 1
            if tensor.dtype != types.get(each.name, torch.int64) or tensor.ndim != dims:
                raise ValueError(f"the trees have a wrong array {each.name}")
            arrays[each.name] = tensor.numpy()
        trees = cls(**arrays)
        trees._check(num_columns, num_classes)
        return trees

    def _check(self, num_columns: int, num_classes: int) -> None:
        """Raise if a row could leave the arrays or walk in a circle."""
        size, outputs, inner = len(self.feature), len(self.start), self.feature != LEAF
        own = np.flatnonzero(inner)

        def inside(ids: np.ndarray, low: int | np.ndarray, high: int) -> bool:
            return bool(((ids >= low) & (ids < high)).all())

        right = (
            {len(self.threshold), len(self.left), len(self.right), len(self.value)}
            == {size}
            and int(self.num_classes) == num_classes
            and len(self.classes) == max(2, outputs)
            and outputs > 0
            and inside(self.classes, 0, num_classes)
            and inside(self.root, 0, size)
            and bool((np.diff(self.root) > 0).all())
            and len(self.root) % outputs == 0
            and inside(self.feature, LEAF, num_columns)
            and inside(self.left[inner], own + 1, size)
            and inside(self.right[inner], own + 1, size)
        )
        if not right:
            raise ValueError("the trees have wrong sizes or indices")


def _read_tree(text: str) -> dict[str, np.ndarray]:
    """The nodes of a tree in LightGBM's text: inner nodes, then leaves.

    LightGBM numbers inner nodes behind their parents, and leaf i is child ~i.
    """
    lines = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    inner = int(lines["num_leaves"]) - 1

    def read(name: str, dtype: type, size: int) -> np.ndarray:
        values: np.ndarray = np.array(lines[name].split() if size else [], dtype)
        if len(values) != size:
            raise ValueError(f"LightGBM gave {len(values)} of {size} values of {name}")
        return values

    def pad(values: np.ndarray, value: int = 0) -> np.ndarray:
        return np.concatenate([values, np.full(inner + 1, value, values.dtype)])

    children = [read(f"{side}_child", np.int64, inner) for side in ("left", "right")]
    left, right = (np.where(child < 0, inner + ~child, child) for child in children)
    return {
        "feature": pad(read("split_feature", np.int32, inner), LEAF),
        "threshold": pad(read("threshold", np.float64, inner)),
        "left": pad(left),
        "right": pad(right),
        "value": np.concatenate(
            [np.zeros(inner), read("leaf_value", np.float64, inner + 1)]
        ),
    }


@no_type_check
@njit(parallel=True)
def _add_leaves(x, sums, root, value, depth, feature, threshold, children):
    outputs = sums.shape[1]
    for block in numba.prange((len(x) + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE):
        low = block * ROWS_AT_ONCE
        rows, own_sums = x[low : low + ROWS_AT_ONCE], sums[low : low + ROWS_AT_ONCE]
        node = np.empty(ROWS_AT_ONCE, np.uint32)
        for tree in range(len(root)):
            node[:] = root[tree]
            for _ in range(depth[tree]):
                for row in range(len(rows)):
                    at = node[row]
                    right = np.uint32(rows[row, feature[at]] > threshold[at])
                    node[row] = children[2 * at + right]
            for row in range(len(rows)):
                own_sums[row, tree % outputs] += value[node[row]]
