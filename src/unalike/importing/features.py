"""Features: node tables encoded into a draft, dense or sparse, as is smaller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from unalike.draft import Draft
from unalike.importing.encoding import Encoder
from unalike.importing.kinds import CATEGORY
from unalike.importing.nodes import NodeReader, Nodes

ONES = (CATEGORY, "boolean")
"""Kinds whose features are 0 or 1, so that sparse rows need no values."""


def write_features(draft: Draft, nodes: Nodes, reader: NodeReader) -> bool:
    """Write the features of all nodes; are they sparse?"""
    size, width = len(nodes.names), nodes.encoder.width
    sparse = nodes.num_nonzero * 8 < size * width * 4
    if not width:
        draft.add("features", np.zeros((size, 0), np.float32))
    elif sparse:
        _write_sparse(draft, nodes.encoder, reader)
    else:
        features = draft.reserve("features", np.float32, (size, width))
        first = 0
        for batch in reader.batches(nodes.encoder.names):
            features[first : first + len(batch)] = nodes.encoder.dense(batch)
            first += len(batch)
    return sparse


def _write_sparse(draft: Draft, encoder: Encoder, reader: NodeReader) -> None:
    lengths = [np.zeros(1, np.int64)]
    weighted = any(column.kind not in ONES for column in encoder.columns)
    with (
        draft.appending("features_columns", np.int32) as add_columns,
        _values(draft, weighted) as add_values,
    ):
        for batch in reader.batches(encoder.names):
            rows = encoder.sparse(batch)
            lengths.append(np.diff(rows.indptr))
            add_columns(rows.indices)
            add_values(rows.data)
    draft.add("features_starts", np.cumsum(np.concatenate(lengths), dtype=np.int64))


@contextmanager
def _values(draft: Draft, weighted: bool) -> Iterator[Callable[[Any], None]]:
    if not weighted:
        yield lambda values: None
        return
    with draft.appending("features_values", np.float32) as append:
        yield append
