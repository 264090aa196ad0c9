"""`RowLoader`: batches of rows of the adjacency, for LINKX in PyTorch Geometric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from unalike.data.adjacency import Adjacency, Ids
from unalike.errors import UserError
from unalike.pyg.to_adjacency import ToAdjacency

if TYPE_CHECKING:
    from torch_geometric.data import Data

NodeRows = Shaped[Tensor, "nodes ..."] | Adjacency
"""Rows of nodes: a dense tensor, or an `Adjacency` for a `torch.sparse` CSR matrix."""


class RowLoader(DataLoader[Any]):
    """Batches of nodes with their rows of the adjacency, for LINKX.

    A batch is a `Data` with `adj_t`, an `Adjacency` with a row for each node of the
    batch and a column for each node of the graph; `n_id`, the ids of its nodes; and its
    rows of every other attribute of nodes, such as `x`, `y` and the masks. Row i of
    `adj_t` has the sources of the edges to node i, as in PyTorch Geometric. Nothing is
    sampled: in eval mode `model(batch.x, batch.adj_t)` of `LINKX` gives the rows of its
    output on the full graph.
    """

    def __init__(
        self,
        data: Data,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        input_nodes: Tensor | None = None,
        **options: Any,
    ) -> None:
        """Load rows of a graph.

        Args:
            data: A graph with `edge_index` or with `adj_t`.
            batch_size: Nodes in a batch.
            shuffle: Give the nodes in another order in each epoch.
            input_nodes: A mask or the ids of the nodes to load; all nodes by default.
            options: Further ones of `torch.utils.data.DataLoader`: num_workers,
                pin_memory, generator, drop_last, persistent_workers and others.
        """
        super().__init__(
            RowDataset(data, input_nodes),
            batch_size,
            shuffle,
            collate_fn=_already_a_batch,
            **options,
        )


class RowDataset(Dataset[Any]):
    """Nodes of a graph, selected with their rows of the adjacency."""

    def __init__(
        self,
        data: Data,
        input_nodes: Tensor | None = None,
    ) -> None:
        self.rows = _rows(data)
        self.ids = _ids(input_nodes, self.rows)
        self.attributes: dict[str, NodeRows] = {
            name: Adjacency.from_torch_csr(value)
            if value.layout == torch.sparse_csr
            else value
            for name, value in data.to_dict().items()
            if isinstance(value, Tensor) and data.is_node_attr(name)
        }

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Data:
        return self.__getitems__([index])

    def __getitems__(self, indices: Sequence[int]) -> Data:
        """A batch; a `DataLoader` calls this with the indices of all its nodes."""
        from torch_geometric.data import Data

        ids = self.ids[torch.tensor(indices, device=self.ids.device)]
        attributes = {
            name: _select(value, ids) for name, value in self.attributes.items()
        }
        rows = self.rows.select_rows(ids)
        return Data(adj_t=rows, n_id=ids, num_nodes=len(ids), **attributes)


def _already_a_batch(batch: Data) -> Data:
    return batch


def _rows(data: Data) -> Adjacency:
    """The adjacency with a row for each target of edges."""
    if isinstance(adj_t := data.get("adj_t"), Adjacency):
        return adj_t
    if isinstance(adj_t, Tensor):
        return Adjacency.from_torch_csr(adj_t.to_sparse_csr())
    if data.edge_index is None:
        raise UserError("A RowLoader needs a graph with edge_index or adj_t.")
    return ToAdjacency()(data).adj_t


def _ids(nodes: Tensor | None, rows: Adjacency) -> Ids:
    """The ids of the nodes to load, on the device of the graph."""
    device = rows.indices.device
    if nodes is None:
        return torch.arange(rows.num_rows, device=device)
    if nodes.ndim != 1 or nodes.is_floating_point():
        raise UserError(
            f"input_nodes has the shape {tuple(nodes.shape)}; give a mask or ids of "
            "nodes, such as data.train_mask[:, 0]."
        )
    return (nodes.nonzero()[:, 0] if nodes.dtype == torch.bool else nodes).to(device)


def _select(values: NodeRows, ids: Ids) -> Shaped[Tensor, "selected ..."]:
    if isinstance(values, Adjacency):
        return values.select_rows(ids).to_torch_csr()
    return values.index_select(0, ids)
