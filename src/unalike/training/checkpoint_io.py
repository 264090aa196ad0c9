"""Sharded read/write by torch distributed checkpoint."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner,
    DefaultSavePlanner,
    create_default_local_load_plan,
)
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadPlan,
    SavePlan,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.planner_helpers import (
    create_read_items_for_chunk_list,
)

from unalike.errors import UserError
from unalike.training.distributed import as_user_error
from unalike.training.stack import RowShard, RowShards


def save(entries: dict[str, Tensor], shares: RowShards, folder: Path) -> None:
    """Write tensors, together with all processes."""
    with checkpoint_errors(f"{folder.parent} cannot be written"):
        state_dict_saver.save(
            entries,
            storage_writer=FileSystemWriter(folder),
            planner=ShardSavePlanner(shares),
        )


def load(entries: dict[str, Tensor], shares: RowShards, folder: Path) -> None:
    """Fill tensors from what was written, by however many processes."""
    with checkpoint_errors(f"{folder.parent} is no checkpoint"):
        state_dict_loader.load(
            entries,
            storage_reader=FileSystemReader(folder),
            planner=ShardLoadPlanner(shares),
        )


@contextmanager
def checkpoint_errors(failed: str) -> Iterator[None]:
    """Save or load with torch: one process is fine, what fails is said in one line."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled")
        try:
            with as_user_error():
                yield
        except CheckpointException as error:
            cause = next(iter(error.failures.values()))[0]
            # Torch takes a wish to stop for a failure.
            if isinstance(cause, KeyboardInterrupt):
                raise cause from None
            raise UserError(f"{failed} ({cause}).") from None


class ShardSavePlanner(DefaultSavePlanner):
    """Writes the rows that are here."""

    def __init__(self, shares: RowShards) -> None:
        super().__init__(flatten_state_dict=False)
        self.shard_specs = shares

    def create_local_plan(self) -> SavePlan:
        plan = super().create_local_plan()
        self.plan = replace(plan, items=[self._placed(item) for item in plan.items])
        return self.plan

    def _placed(self, item: WriteItem) -> WriteItem:
        name = item.index.fqn
        if name not in self.shard_specs:
            return item
        tensor, share = self.state_dict[name], self.shard_specs[name]
        chunk = chunk_metadata(tensor, share)
        return WriteItem(
            index=MetadataIndex(name, chunk.offsets),
            type=WriteItemType.SHARD,
            tensor_data=TensorWriteData(
                chunk=chunk,
                properties=TensorProperties.create_from_tensor(tensor),
                size=whole_size(tensor, share),
            ),
        )

    def lookup_object(self, index: MetadataIndex) -> Tensor:
        return self.state_dict[index.fqn]


class ShardLoadPlanner(DefaultLoadPlanner):
    """Reads the rows that are wanted here, whoever wrote them."""

    def __init__(self, shares: RowShards) -> None:
        super().__init__(flatten_state_dict=False)
        self.shard_specs = shares

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None
        everywhere = {
            name: tensor
            for name, tensor in self.state_dict.items()
            if name not in self.shard_specs
        }
        plan = create_default_local_load_plan(everywhere, self.metadata)
        known = self.metadata.state_dict_metadata
        for name, share in self.shard_specs.items():
            found, tensor = known[name], self.state_dict[name]
            assert isinstance(found, TensorStorageMetadata)
            if found.size != whole_size(tensor, share):
                raise ValueError(f"{name} has another size")
            chunks = [chunk_metadata(tensor, share)]
            plan.items += create_read_items_for_chunk_list(name, found, chunks)
        return plan

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        return self.state_dict[index.fqn]


def chunk_metadata(tensor: Tensor, share: RowShard) -> ChunkStorageMetadata:
    """Where the rows that are here lie in the whole."""
    offsets = torch.Size([share.held.start, *[0] * (tensor.dim() - 1)])
    return ChunkStorageMetadata(offsets=offsets, sizes=tensor.size())


def whole_size(tensor: Tensor, share: RowShard) -> torch.Size:
    """The shape of the tensor of which some rows are here."""
    return torch.Size([share.of, *tensor.shape[1:]])
