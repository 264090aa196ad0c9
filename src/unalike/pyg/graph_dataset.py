"""`GraphDataset`: a PyTorch Geometric `Data` that is also a dataset of one graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch_geometric.data import Data


class GraphDataset(Data):
    """A graph with its splits, used as `data` or as `dataset[0]`.

    In addition to the names of `Data` it has `train_mask`, `val_mask` and `test_mask`
    of shape [nodes, splits], `num_classes`, `name`, `metric`, `citation` and `licence`.
    """

    def __len__(self) -> int:
        return 1

    def __getitem__(self, key: int | str) -> Any:
        """The graph as a plain `Data` for index 0; an attribute for a name."""
        if isinstance(key, str):
            return super().__getitem__(key)
        if key not in (0, -1):
            raise IndexError(f"The dataset has one graph; there is no index {key}.")
        return Data.from_dict(self.to_dict())

    def __iter__(self) -> Iterator[Data]:
        yield self[0]
