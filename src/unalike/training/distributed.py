"""Rank and collectives, rendezvous, launch, column-parallel product."""

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
from unalike.errors import UserError
from unalike.nn.cpu import spmm_accumulate_
from unalike.nn.sparse import backend

# Launch: the same command once more, in several processes of this machine.


SHUTDOWN_SECONDS = 5
"""How long processes may take to stop when one of them is lost."""


def launch(words: Sequence[str], processes: int, *, module: str = "unalike") -> int:
    """Run a module with these words in several processes; the status they end with.

    They are torch's to start, to watch and to stop, as under `torchrun`.
    """
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
    try:
        elastic_launch(config, sys.executable)("-m", module, *words)
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
    return 0


# Meeting: how processes that were started together find each other.


AT = ("ADDR", "PORT")
LEADER = "leader"
POLL_SECONDS = 0.02
"""Between two looks at whether the first process has come."""


def init_process_group(device: torch.device, patience: timedelta) -> Store:
    """Join the others, and return the notes that all of them can read."""
    try:
        store, rank, size = next(rendezvous("env://", timeout=patience))
        name = (
            announce(store, size)
            if rank == 0
            else wait_for_leader(store, rank, patience)
        )
    except (dist.DistError, ValueError) as error:
        where = ":".join(os.environ.get(f"MASTER_{part}", "?") for part in AT)
        told = str(error).splitlines()[0]
        raise UserError(
            f"No process can meet the others at {where} ({told}); "
            "set MASTER_ADDR and MASTER_PORT to a free port of the first host."
        ) from None
    if device.type == "cuda":
        torch.cuda.set_device(device)
    notes = PrefixStore(name, store)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(
        backend, store=notes, rank=rank, world_size=size, timeout=patience
    )
    return notes


def announce(store: Store, size: int) -> str:
    """Tell every other process, once it has come, the name of this meeting.

    Processes that replace lost ones are given the notes of those: whoever reads there
    where to find another may look for the dead. So each meeting has notes of its own.
    """
    name = uuid4().hex
    store.set(LEADER, name)
    for rank in range(1, size):
        store.set(store.get(f"{name}/{rank}").decode(), name)
    return name


def wait_for_leader(store: Store, rank: int, patience: timedelta) -> str:
    """The name of this meeting, told by its leader and by none that led before."""
    own, until = uuid4().hex, time.monotonic() + patience.total_seconds()
    while not store.check([own]):
        if time.monotonic() > until:
            raise dist.DistStoreError("the first process did not come")
        store.set(f"{store.get(LEADER).decode()}/{rank}", own)
        time.sleep(POLL_SECONDS)
    return store.get(own).decode()


# World: the processes that train together, of which this is one.


TIMEOUT_SECONDS = 600.0
"""Seconds that a process waits for the others before it gives them up."""
TOLD = "told"
ASK_SECONDS = 2.0
"""How long a process that has something to tell asks whether another has told it."""


@dataclass
class CommunicationStats:
    """What a process was sent by the others; all that is sent arrives once."""

    received: int = 0
    """Bytes of numbers."""
    messages: int = 0

    def count(self, received: int) -> None:
        """Count a message."""
        self.received += received
        self.messages += 1


@dataclass(frozen=True)
class World:
    """Processes that hold a part of each divided table, or learn from a batch each.

    A world of one talks to nobody.
    """

    rank: int = 0
    size: int = 1
    traffic: CommunicationStats = field(
        default_factory=CommunicationStats, compare=False
    )

    @classmethod
    def current(cls) -> World:
        """The world that was joined, or a process alone."""
        if not dist.is_initialized():
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def is_main(self) -> bool:
        """Does this process speak for all?"""
        return self.rank == 0

    def all_reduce(self, numbers: Float[Tensor, "*shape"]) -> None:
        """Replace numbers by their sum over all processes, in whatever order.

        What arrives is counted as the fewest bytes that any all-reduce can do with.
        """
        if self.size > 1:
            with as_user_error():
                dist.all_reduce(numbers)
            self.traffic.count(2 * numbers.nbytes * (self.size - 1) // self.size)

    def recv_from_previous(self, numbers: Float[Tensor, "*shape"]) -> None:
        """Replace numbers by those of the process before this one."""
        if self.rank > 0:
            with as_user_error():
                dist.recv(numbers, self.rank - 1)
            self.traffic.count(numbers.nbytes)

    def isend_to_next(self, numbers: Float[Tensor, "*shape"]) -> dist.Work | None:
        """Begin to give numbers to the process after this one."""
        if self.rank + 1 == self.size:
            return None
        with as_user_error():
            return dist.isend(numbers, self.rank + 1)

    def wait(self, given: Sequence[dist.Work | None]) -> None:
        """Wait until the next process has all that it was given."""
        for work in given:
            if work is not None:
                with as_user_error():
                    work.wait()

    def broadcast_from_last(self, numbers: Float[Tensor, "*shape"]) -> None:
        """Replace numbers by those of the last process."""
        if self.size > 1:
            with as_user_error():
                dist.broadcast(numbers, self.size - 1)
            if self.rank + 1 < self.size:
                self.traffic.count(numbers.nbytes)

    def broadcast(self, numbers: Shaped[Tensor, "*shape"]) -> None:
        """Replace numbers by those of the leading process."""
        if self.size > 1:
            with as_user_error():
                dist.broadcast(numbers, 0)

    def all_min(self, number: int) -> int:
        """The smallest of the numbers that the processes name."""
        return min(self.all_gather_object(number))

    def broadcast_object(self, thing: Any) -> Any:
        """What the leading process has here."""
        if self.size == 1:
            return thing
        things = [thing]
        with as_user_error():
            dist.broadcast_object_list(things)
        return things[0]

    def all_gather_object(self, thing: Any) -> list[Any]:
        """What every process has here, by rank."""
        if self.size == 1:
            return [thing]
        things: list[Any] = [None] * self.size
        with as_user_error():
            dist.all_gather_object(things, thing)
        return things

    def assert_equal_on_all_ranks(self, facts: Mapping[str, Any]) -> None:
        """Refuse to go on where processes differ in a fact."""
        first, *others = self.all_gather_object(dict(facts))
        for rank, told in enumerate(others, start=1):
            for name, value in told.items():
                if value != first.get(name):
                    raise UserError(
                        f"Processes differ in {name}: 0 has {first.get(name)}, "
                        f"{rank} has {value}."
                    )


@contextmanager
def as_user_error() -> Iterator[None]:
    """Talk to the other processes; that one is gone is said in one line."""
    try:
        yield
    except (dist.DistError, RuntimeError) as error:
        # Torch's words stand behind the place in its sources.
        told = str(error).splitlines()[0].rpartition("] ")[2]
        raise UserError(f"Another process was lost or is late ({told}).") from None


def is_distributed() -> bool:
    """Was this process started as one of several?"""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def local_device(device: str) -> str:
    """The device of this process: a card of its own, where there are cards."""
    if device == "cuda" and is_distributed():
        return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    return device


@contextmanager
def init_distributed(
    device: str = "cpu", *, patience: float = TIMEOUT_SECONDS
) -> Iterator[World]:
    """The world that a launcher described in the environment, while the block runs.

    Where something is wrong everywhere, only one process says so.
    """
    if not is_distributed():
        yield World()
        return
    store = init_process_group(torch.device(device), timedelta(seconds=patience))
    try:
        with _divide_threads():
            yield World.current()
    except UserError:
        if _already_reported(store):
            raise SystemExit(1) from None
        raise
    finally:
        dist.destroy_process_group()


def _already_reported(store: Store) -> bool:
    """Has another process told what is wrong? Unknown if nobody answers."""
    tellers: list[int] = []

    def ask() -> None:
        with suppress(dist.DistError, RuntimeError):
            tellers.append(store.add(TOLD, 1))

    # The store waits for an answer as long as the network does, which may be hours.
    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(ASK_SECONDS)
    return any(count > 1 for count in tellers)


@contextmanager
def _divide_threads() -> Iterator[None]:
    """Share the cores of a host among its processes, unless somebody has done so."""
    before = torch.get_num_threads()
    if "OMP_NUM_THREADS" not in os.environ:
        together = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        torch.set_num_threads(max(1, before // together))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def main_process_first(world: World) -> Iterator[None]:
    """Let one process of each host do what the others then find done."""
    waits = os.environ.get("LOCAL_RANK", "0") != "0"
    if waits:
        world.all_gather_object(None)
    yield
    if not waits:
        world.all_gather_object(None)


# Joint products: every process adds the columns that it holds.


CHUNKS_PER_PROCESS = 4
"""Pieces of a product for each process, so that none waits long for its first."""
MIN_CHUNK_NUMEL = 2**16
"""Numbers that are worth sending on their own."""


def shard_columns(graph: Graph, world: World) -> Graph:
    """The graph with the columns that this process looks after."""
    whole = graph.adjacency
    if world.size == 1:
        return graph
    if isinstance(whole, ShardedAdjacency):
        if whole.num_shards != world.size:
            raise UserError(
                f"The graph has {whole.num_shards} shards and there are {world.size} "
                f"processes; `unalike shard GRAPH --parts {world.size}` divides it."
            )
        return replace(graph, adjacency=whole.shard(world.rank))
    bounds = balanced_bounds(column_nnz(whole), world.size)
    held = range(bounds[world.rank], bounds[world.rank + 1])
    return replace(graph, adjacency=take_columns(whole, held))


def column_parallel_spmm(
    world: World,
    matrix: Adjacency,
    table: Float[Tensor, "rows width"],
    offset: Float[Tensor, " width"] | None,
    out: Float[Tensor, "nodes width"] | None,
) -> Float[Tensor, "nodes width"]:
    """The product of all columns with a table of which each process holds some rows.

    On processor cores the processes add their columns in turn, a piece of the rows at
    a time: the order, and so every bit, is that of a process alone. Within 50 epochs
    AdamW makes 10^-3 of a difference in the last bit. Cards sum as they like.
    """
    gather = backend(table.device).spmm
    if world.size == 1:
        return gather(matrix, table, offset, out)
    if table.is_cuda:
        product = gather(matrix, table, offset if world.is_main else None, out)
        world.all_reduce(product)
        return product
    product = table.new_empty(matrix.num_rows, table.shape[1]) if out is None else out
    reduce_in_rank_order(world, matrix, table, product)
    return product if offset is None else product.add_(offset)


def chunk_rows(rows: int, width: int, processes: int) -> int:
    """How many rows of a product processes give on at a time."""
    fewest = max(1, MIN_CHUNK_NUMEL // max(1, width))
    return max(fewest, -(-rows // (CHUNKS_PER_PROCESS * processes)))


def reduce_in_rank_order(
    world: World,
    matrix: Adjacency,
    table: Float[Tensor, "rows width"],
    product: Float[Tensor, "nodes width"],
) -> None:
    """Add columns to what the process before has summed, and give the sums on."""
    product.zero_()
    size = chunk_rows(matrix.num_rows, table.shape[1], world.size)
    given = []
    for begin in range(0, matrix.num_rows, size):
        rows = slice(begin, begin + size)
        world.recv_from_previous(product[rows])
        spmm_accumulate_(matrix[rows], table, product[rows])
        given.append(world.isend_to_next(product[rows]))
    world.wait(given)
    world.broadcast_from_last(product)
