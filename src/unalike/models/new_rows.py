"""NewRows: the edges of nodes that are not among the columns, both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import scipy.sparse
import torch

from unalike.adjacency import Adjacency
from unalike.errors import UserError
from unalike.models.facts import Facts

Pairs: TypeAlias = Iterable[tuple[int, int | str]] | np.ndarray
"""The number of a new node from 0 on, and the user's own id of a known one."""
Given: TypeAlias = Adjacency | scipy.sparse.sparray | scipy.sparse.spmatrix | Pairs
"""Sparse rows with a column for each known node, or pairs."""
Find: TypeAlias = Callable[[pa.Array], np.ndarray]
"""The number of each known node by its id, -1 for others."""


@dataclass(frozen=True, eq=False)
class NewRows(Adjacency):
    """Row u holds the known nodes that the new node u points at.

    New nodes are no columns, so that what points at them cannot be read off the same
    entries. It is given beside them, and stands where a square adjacency has its
    mirror image: a method prepares both kinds of rows by the same words.
    """

    into: Adjacency = field(kw_only=True)
    """Row u holds the known nodes that point at u."""

    @classmethod
    def of(cls, out: Adjacency, into: Adjacency, *, directed: bool) -> NewRows:
        """The rows of new nodes; in an undirected graph either direction is both."""
        if not directed and into is not out:
            out = into = union(out, into)
        return cls(out.starts, out.columns, out.width, out.values, into=into)

    @property
    def transposed(self) -> Adjacency:
        return self.into

    def symmetric(self) -> Adjacency:
        same = self.into.columns is self.columns
        return self.into if same else union(self, self.into)


def union(one: Adjacency, other: Adjacency) -> Adjacency:
    """The entries of both; where both have a weight, the larger."""
    rows, more = one.to_scipy(), other.to_scipy()
    if one.values is None and other.values is None:
        return Adjacency.from_scipy(rows.maximum(more), weighted=False)
    # The maximum takes what is absent for 0, which is above negative weights.
    here, there = abs(rows.sign()), abs(more.sign())
    shared = here.multiply(there)
    full = rows + more.multiply(there - shared)
    return Adjacency.from_scipy(full.maximum(more + rows.multiply(here - shared)))


def gather_rows(
    given: tuple[Given, Given | None], find: Find, facts: Facts, num_rows: int | None
) -> tuple[NewRows, int]:
    """The rows of new nodes, and how many of their neighbours are unknown.

    What is given leaves the new nodes, or enters them.
    """
    leaving, entering = given
    out, unknown = _known_rows(leaving, find, facts.num_known, num_rows)
    if entering is None:
        into = without_entries(out) if facts.directed else out
    else:
        into, more = _known_rows(entering, find, facts.num_known, num_rows)
        unknown += more
    if out.num_rows != into.num_rows:
        raise UserError(
            f"Edges leave {out.num_rows} new nodes and enter {into.num_rows}; "
            "give the features of all new nodes, or rows for all of them."
        )
    return NewRows.of(out, into, directed=facts.directed), unknown


def without_entries(rows: Adjacency) -> Adjacency:
    """As many rows, all of them empty."""
    none = torch.zeros(0, dtype=torch.int64)
    return Adjacency.from_edges(none, none, shape=rows.shape)


def _known_rows(
    given: Given, find: Find, width: int, num_rows: int | None
) -> tuple[Adjacency, int]:
    if scipy.sparse.issparse(given):
        given = Adjacency.from_scipy(given)
    if not isinstance(given, Adjacency):
        return _from_pairs(given, find, width, num_rows)
    if given.width != width or num_rows not in (None, given.num_rows):
        needed = given.num_rows if num_rows is None else num_rows
        raise UserError(
            f"The rows of new nodes are {given.num_rows} x {given.width}; they should "
            f"be {needed} x {width}, a column for each known node."
        )
    return given, 0


def _from_pairs(
    pairs: Pairs, find: Find, width: int, num_rows: int | None
) -> tuple[Adjacency, int]:
    ends = [tuple(pair) for pair in pairs]
    if any(len(pair) != 2 for pair in ends):
        raise UserError("An edge is a pair: the number of a new node and a known id.")
    try:
        new = np.array([pair[0] for pair in ends], np.int64)
        known = find(pa.array([pair[1] for pair in ends], _kind(ends)))
    except (ValueError, TypeError, pa.ArrowException):
        raise UserError(
            "The edges of new nodes are pairs of a number from 0 on and a known id, "
            "and the ids are all numbers or all text."
        ) from None
    size = num_rows if num_rows is not None else int(new.max(initial=-1)) + 1
    there = known >= 0
    rows = Adjacency.from_edges(
        torch.from_numpy(new[there]),
        torch.from_numpy(known[there].astype(np.int64)),
        shape=(size, width),
    )
    return rows, int((~there).sum())


def _kind(ends: list[tuple[int, int | str]]) -> pa.DataType:
    text = any(isinstance(known, str) for _, known in ends)
    return pa.large_string() if text else pa.int64()
