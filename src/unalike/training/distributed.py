"""Distributed training: launch, rendezvous, collectives, column-parallel product."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from threading import Thread
from typing import Any
from uuid import uuid4

import torch
import torch.distributed as dist
from jaxtyping import Float, Shaped
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from unalike.data.adjacency import Adjacency
from unalike.data.csr import balanced_bounds
from unalike.data.graph import Graph
from unalike.data.sharding import ShardedAdjacency, column_nnz, take_columns
from unalike.errors import UserError, first_line
from unalike.nn.cpu import spmm_accumulate_
from unalike.nn.sparse import backend
from unalike.parallel import use_threads

# Launch.


SHUTDOWN_SECONDS = 5
"""Seconds that processes have to stop when one of them has died."""


LAUNCHER = "UNALIKE_LAUNCHER"
"""Environment variable with the process id of `launch`."""
PARENT_POLL_SECONDS = 1.0
"""Between two checks whether the launcher is alive."""


def launch(arguments: Sequence[str], processes: int, *, module: str = "unalike") -> int:
    """Run a module in several processes, as `torchrun` does; return the exit status."""
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    os.environ[LAUNCHER] = str(os.getpid())
    try:
        elastic_launch(config, sys.executable)("-m", module, *arguments)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode < 0:
            raise UserError(
                f"Process {rank} of {processes} was killed by signal "
                f"{-failure.exitcode}; the others were stopped."
            ) from None
        return failure.exitcode
    except SignalException:
        raise KeyboardInterrupt from None
    finally:
        del os.environ[LAUNCHER]
    return 0


# Rendezvous.


LEADER = "leader"
POLL_SECONDS = 0.02
"""Seconds between two looks for an answer of rank 0."""


def init_process_group(device: torch.device, timeout: timedelta) -> Store:
    """Join the process group and return the store that all of its processes share."""
    try:
        store, rank, size = next(rendezvous("env://", timeout=timeout))
        leads = rank == 0
        name = announce(store, size) if leads else wait_for_leader(store, rank, timeout)
    except (dist.DistError, ValueError) as error:
        address, port = (os.environ.get(f"MASTER_{x}", "?") for x in ("ADDR", "PORT"))
        reason = first_line(error)
        raise UserError(
            f"The process cannot connect to the others at {address}:{port} ({reason}); "
            "set MASTER_ADDR and MASTER_PORT to a free port of the first host."
        ) from None
    if device.type == "cuda":
        torch.cuda.set_device(device)
    store = PrefixStore(name, store)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(
        backend, store=store, rank=rank, world_size=size, timeout=timeout
    )
    return store


def announce(store: Store, size: int) -> str:
    """Send a new prefix of the store to every other process once it has started.

    Processes that replace dead ones get the store of those, where addresses of dead
    processes are written. So each rendezvous has a prefix of its own.
    """
    name = uuid4().hex
    store.set(LEADER, name)
    for rank in range(1, size):
        store.set(store.get(f"{name}/{rank}").decode(), name)
    return name


def wait_for_leader(store: Store, rank: int, timeout: timedelta) -> str:
    """The prefix that rank 0 of this rendezvous, not of an earlier one, has sent."""
    own, until = uuid4().hex, time.monotonic() + timeout.total_seconds()
    while not store.check([own]):
        if time.monotonic() > until:
            raise dist.DistStoreError("the first process did not start")
        store.set(f"{store.get(LEADER).decode()}/{rank}", own)
        time.sleep(POLL_SECONDS)
    return store.get(own).decode()


# Rank, world size and collectives.


TIMEOUT_SECONDS = 600.0
"""Seconds that a process waits for the others."""
REPORTED = "reported"
REPORT_SECONDS = 2.0
"""Seconds that a process with an error waits for the store to say who reports it."""


@dataclass
class CommunicationStats:
    """Bytes and messages that a process has received."""

    received: int = 0
    """Bytes of tensors."""
    messages: int = 0

    def count(self, received: int) -> None:
        self.received += received
        self.messages += 1


@contextmanager
def as_user_error() -> Iterator[None]:
    """Raise a `UserError` of one line if communication with a process fails."""
    try:
        yield
    except (dist.DistError, RuntimeError) as error:
        # Torch writes "[file:line] message".
        reason = str(error).splitlines()[0].rpartition("] ")[2]
        raise UserError(f"Another process was lost or is late ({reason}).") from None


@dataclass(frozen=True)
class World:
    """Processes that train together: column parallel or data parallel.

    With one process, which is the default, nothing is sent.
    """

    rank: int = 0
    size: int = 1
    traffic: CommunicationStats = field(
        default_factory=CommunicationStats, compare=False
    )

    @classmethod
    def current(cls) -> World:
        """The process group of torch, or a single process."""
        if not dist.is_initialized():
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    @as_user_error()
    def all_reduce(self, tensor: Float[Tensor, "*shape"]) -> None:
        """Replace a tensor by its sum over all processes, in any order.

        Counted as the least number of bytes that any all-reduce needs.
        """
        if self.size > 1:
            dist.all_reduce(tensor)
            self.traffic.count(2 * tensor.nbytes * (self.size - 1) // self.size)

    @as_user_error()
    def recv_from_previous(self, tensor: Float[Tensor, "*shape"]) -> None:
        """Replace a tensor by that of the previous rank."""
        if self.rank > 0:
            dist.recv(tensor, self.rank - 1)
            self.traffic.count(tensor.nbytes)

    @as_user_error()
    def isend_to_next(self, tensor: Float[Tensor, "*shape"]) -> dist.Work | None:
        """Start to send a tensor to the next rank."""
        if self.rank + 1 == self.size:
            return None
        return dist.isend(tensor, self.rank + 1)

    @as_user_error()
    def wait(self, sends: Sequence[dist.Work | None]) -> None:
        """Wait until the next rank has received everything."""
        for work in sends:
            if work is not None:
                work.wait()

    @as_user_error()
    def broadcast_from_last(self, tensor: Float[Tensor, "*shape"]) -> None:
        """Replace a tensor by that of the last rank."""
        if self.size > 1:
            dist.broadcast(tensor, self.size - 1)
            if self.rank + 1 < self.size:
                self.traffic.count(tensor.nbytes)

    @as_user_error()
    def broadcast(self, tensor: Shaped[Tensor, "*shape"]) -> None:
        """Replace a tensor by that of rank 0."""
        if self.size > 1:
            dist.broadcast(tensor, 0)

    def all_min(self, number: int) -> int:
        return min(self.all_gather_object(number))

    @as_user_error()
    def broadcast_object(self, value: Any) -> Any:
        """The object of rank 0."""
        values = [value]
        if self.size > 1:
            dist.broadcast_object_list(values)
        return values[0]

    @as_user_error()
    def all_gather_object(self, value: Any) -> list[Any]:
        """The objects of all processes by rank."""
        values = [value] * self.size
        if self.size > 1:
            dist.all_gather_object(values, value)
        return values

    def assert_equal_on_all_ranks(self, values: Mapping[str, Any]) -> None:
        """Raise if processes have different values."""
        first, *others = self.all_gather_object(dict(values))
        for rank, other in enumerate(others, start=1):
            for name, value in other.items():
                if value != first.get(name):
                    raise UserError(
                        f"Processes differ in {name}: 0 has {first.get(name)}, "
                        f"{rank} has {value}."
                    )


def is_distributed() -> bool:
    """Was this process started as one of several?"""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def local_device(device: str) -> str:
    """The device of this process: each process of a host has its own GPU."""
    if device == "cuda" and is_distributed():
        return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    return device


def _exit_with_parent() -> None:
    """End this process when `launch`, which started it, is killed."""
    if LAUNCHER not in os.environ:
        return
    parent = int(os.environ[LAUNCHER])

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_POLL_SECONDS)
        os._exit(1)

    Thread(target=watch, daemon=True, name="parent watch").start()


@contextmanager
def init_distributed(
    device: str = "cpu", *, timeout: float = TIMEOUT_SECONDS
) -> Iterator[World]:
    """Join the process group that a launcher described in the environment.

    An error that all processes have is reported by one of them.
    """
    if not is_distributed():
        yield World()
        return
    _exit_with_parent()
    store = init_process_group(torch.device(device), timedelta(seconds=timeout))
    threads = torch.get_num_threads()
    if "OMP_NUM_THREADS" not in os.environ:
        threads = max(1, threads // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    try:
        with use_threads(threads):
            yield World.current()
    except UserError:
        if _already_reported(store):
            raise SystemExit(1) from None
        raise
    finally:
        dist.destroy_process_group()


def _already_reported(store: Store) -> bool:
    """Has another process reported the error? False if the store does not answer."""
    counts: list[int] = []

    def ask() -> None:
        with suppress(dist.DistError, RuntimeError):
            counts.append(store.add(REPORTED, 1))

    # The store has a timeout of its own, which may be hours.
    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(REPORT_SECONDS)
    return any(count > 1 for count in counts)


@contextmanager
def main_process_first(world: World) -> Iterator[None]:
    """Let one process of each host run the block before the others."""
    waits = os.environ.get("LOCAL_RANK", "0") != "0"
    if waits:
        world.all_gather_object(None)
    yield
    if not waits:
        world.all_gather_object(None)


# Column-parallel product.


CHUNKS_PER_PROCESS = 4
"""Chunks of rows for each process; with more, the next process starts earlier."""
MIN_CHUNK_NUMEL = 2**16
"""Elements of the smallest message."""


def shard_columns(graph: Graph, world: World) -> Graph:
    """The graph with the columns of this process."""
    adjacency = graph.adjacency
    if world.size == 1:
        return graph
    if isinstance(adjacency, ShardedAdjacency):
        if adjacency.num_shards != world.size:
            raise UserError(
                f"The graph has {adjacency.num_shards} shards and there are "
                f"{world.size} processes; `unalike shard GRAPH --parts {world.size}` "
                "divides it."
            )
        return replace(graph, adjacency=adjacency.shard(world.rank))
    bounds = balanced_bounds(column_nnz(adjacency), world.size)
    local_cols = range(bounds[world.rank], bounds[world.rank + 1])
    return replace(graph, adjacency=take_columns(adjacency, local_cols))


def column_parallel_spmm(
    world: World,
    matrix: Adjacency,
    weight: Float[Tensor, "rows width"],
    bias: Float[Tensor, " width"] | None,
    out: Float[Tensor, "nodes width"] | None,
) -> Float[Tensor, "nodes width"]:
    """Sparse matrix times weight plus bias; each process has some columns and rows.

    On the CPU the ranks add their columns in order, a chunk of rows at a time: every
    bit is that of a single process. AdamW turns a difference in the last bit into one
    of 10^-3 within 50 epochs. GPUs sum in any order.
    """
    spmm = backend(weight.device).spmm
    if world.size == 1:
        return spmm(matrix, weight, bias, out)
    if weight.is_cuda:
        product = spmm(matrix, weight, bias if world.is_main else None, out)
        world.all_reduce(product)
        return product
    product = weight.new_empty(matrix.num_rows, weight.shape[1]) if out is None else out
    reduce_in_rank_order(world, matrix, weight, product)
    return product if bias is None else product.add_(bias)


def chunk_rows(rows: int, width: int, processes: int) -> int:
    """Rows of a product that are sent at a time."""
    min_rows = max(1, MIN_CHUNK_NUMEL // max(1, width))
    return max(min_rows, -(-rows // (CHUNKS_PER_PROCESS * processes)))


def reduce_in_rank_order(
    world: World,
    matrix: Adjacency,
    weight: Float[Tensor, "rows width"],
    product: Float[Tensor, "nodes width"],
) -> None:
    """Add the product of this process to that of lower ranks and send it on."""
    product.zero_()
    size = chunk_rows(matrix.num_rows, weight.shape[1], world.size)
    sends = []
    for begin in range(0, matrix.num_rows, size):
        rows = slice(begin, begin + size)
        world.recv_from_previous(product[rows])
        spmm_accumulate_(matrix[rows], weight, product[rows])
        sends.append(world.isend_to_next(product[rows]))
    world.wait(sends)
    world.broadcast_from_last(product)
