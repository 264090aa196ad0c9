"""Read and write sharded checkpoints by torch.distributed.checkpoint."""

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
from unalike.training.checkpoint_index import IndexReader, IndexWriter
from unalike.training.distributed import as_user_error
from unalike.training.stack import RowShard, RowShards


def save(tensors: dict[str, Tensor], shards: RowShards, folder: Path) -> None:
    """Write tensors; all processes take part."""
    with checkpoint_errors(f"{folder.parent} cannot be written"):
        state_dict_saver.save(
            tensors,
            storage_writer=IndexWriter(folder),
            planner=ShardSavePlanner(shards),
        )


def load(tensors: dict[str, Tensor], shards: RowShards, folder: Path) -> None:
    """Load tensors, whatever the number of processes that wrote them."""
    with checkpoint_errors(f"{folder.parent} is no checkpoint"):
        state_dict_loader.load(
            tensors,
            storage_reader=IndexReader(folder),
            planner=ShardLoadPlanner(shards),
        )


@contextmanager
def checkpoint_errors(message: str) -> Iterator[None]:
    """Raise a `UserError` of one line where torch cannot save or load."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled")
        try:
            with as_user_error():
                yield
        except CheckpointException as error:
            cause = next(iter(error.failures.values()))[0]
            # Torch wraps Ctrl-C too.
            if isinstance(cause, KeyboardInterrupt):
                raise cause from None
            raise UserError(f"{message} ({cause}).") from None


class ShardSavePlanner(DefaultSavePlanner):
    """Writes the rows of this process."""

    def __init__(self, shards: RowShards) -> None:
        super().__init__(flatten_state_dict=False)
        self.shards = shards

    def create_local_plan(self) -> SavePlan:
        plan = super().create_local_plan()
        self.plan = replace(plan, items=[self._with_shard(item) for item in plan.items])
        return self.plan

    def _with_shard(self, item: WriteItem) -> WriteItem:
        name = item.index.fqn
        if name not in self.shards:
            return item
        tensor, shard = self.state_dict[name], self.shards[name]
        chunk = chunk_metadata(tensor, shard)
        return WriteItem(
            index=MetadataIndex(name, chunk.offsets),
            type=WriteItemType.SHARD,
            tensor_data=TensorWriteData(
                chunk=chunk,
                properties=TensorProperties.create_from_tensor(tensor),
                size=global_size(tensor, shard),
            ),
        )

    def lookup_object(self, index: MetadataIndex) -> Tensor:
        return self.state_dict[index.fqn]


class ShardLoadPlanner(DefaultLoadPlanner):
    """Reads the rows of this process, whichever process wrote them."""

    def __init__(self, shards: RowShards) -> None:
        super().__init__(flatten_state_dict=False)
        self.shards = shards

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None
        replicated = {
            name: tensor
            for name, tensor in self.state_dict.items()
            if name not in self.shards
        }
        plan = create_default_local_load_plan(replicated, self.metadata)
        for name, shard in self.shards.items():
            stored = self.metadata.state_dict_metadata[name]
            tensor = self.state_dict[name]
            assert isinstance(stored, TensorStorageMetadata)
            if stored.size != global_size(tensor, shard):
                raise ValueError(f"{name} has another size")
            chunks = [chunk_metadata(tensor, shard)]
            plan.items += create_read_items_for_chunk_list(name, stored, chunks)
        return plan

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        return self.state_dict[index.fqn]


def chunk_metadata(tensor: Tensor, shard: RowShard) -> ChunkStorageMetadata:
    """Offset and size of the rows of this process in the full tensor."""
    offsets = torch.Size([shard.local_rows.start, *[0] * (tensor.dim() - 1)])
    return ChunkStorageMetadata(offsets=offsets, sizes=tensor.size())


def global_size(tensor: Tensor, shard: RowShard) -> torch.Size:
    """The shape of the full tensor."""
    return torch.Size([shard.num_rows, *tensor.shape[1:]])
