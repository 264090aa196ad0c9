"""World: the processes that train together, of which this is one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Thread
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float, Shaped
from torch import Tensor
from torch._C._distributed_c10d import Store

from unalike.errors import UserError
from unalike.training.meeting import meet

PATIENCE = 600.0
"""Seconds that a process waits for the others before it gives them up."""
TOLD = "told"
ASK_SECONDS = 2.0
"""How long a process that has something to tell asks whether another has told it."""


@dataclass
class Traffic:
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
    traffic: Traffic = field(default_factory=Traffic, compare=False)

    @classmethod
    def here(cls) -> World:
        """The world that was joined, or a process alone."""
        if not dist.is_initialized():
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def leads(self) -> bool:
        """Does this process speak for all?"""
        return self.rank == 0

    def sum(self, numbers: Float[Tensor, "*shape"]) -> None:
        """Replace numbers by their sum over all processes, in whatever order.

        What arrives is counted as the fewest bytes that any all-reduce can do with.
        """
        if self.size > 1:
            with company():
                dist.all_reduce(numbers)
            self.traffic.count(2 * numbers.nbytes * (self.size - 1) // self.size)

    def receive(self, numbers: Float[Tensor, "*shape"]) -> None:
        """Replace numbers by those of the process before this one."""
        if self.rank > 0:
            with company():
                dist.recv(numbers, self.rank - 1)
            self.traffic.count(numbers.nbytes)

    def pass_on(self, numbers: Float[Tensor, "*shape"]) -> dist.Work | None:
        """Begin to give numbers to the process after this one."""
        if self.rank + 1 == self.size:
            return None
        with company():
            return dist.isend(numbers, self.rank + 1)

    def settle(self, given: Sequence[dist.Work | None]) -> None:
        """Wait until the next process has all that it was given."""
        for work in given:
            if work is not None:
                with company():
                    work.wait()

    def follow_last(self, numbers: Float[Tensor, "*shape"]) -> None:
        """Replace numbers by those of the last process."""
        if self.size > 1:
            with company():
                dist.broadcast(numbers, self.size - 1)
            if self.rank + 1 < self.size:
                self.traffic.count(numbers.nbytes)

    def follow_first(self, numbers: Shaped[Tensor, "*shape"]) -> None:
        """Replace numbers by those of the leading process."""
        if self.size > 1:
            with company():
                dist.broadcast(numbers, 0)

    def least(self, number: int) -> int:
        """The smallest of the numbers that the processes name."""
        return min(self.gather(number))

    def follow(self, thing: Any) -> Any:
        """What the leading process has here."""
        if self.size == 1:
            return thing
        things = [thing]
        with company():
            dist.broadcast_object_list(things)
        return things[0]

    def gather(self, thing: Any) -> list[Any]:
        """What every process has here, by rank."""
        if self.size == 1:
            return [thing]
        things: list[Any] = [None] * self.size
        with company():
            dist.all_gather_object(things, thing)
        return things

    def agree(self, facts: Mapping[str, Any]) -> None:
        """Refuse to go on where processes differ in a fact."""
        first, *others = self.gather(dict(facts))
        for rank, told in enumerate(others, start=1):
            for name, value in told.items():
                if value != first.get(name):
                    raise UserError(
                        f"Processes differ in {name}: 0 has {first.get(name)}, "
                        f"{rank} has {value}."
                    )


@contextmanager
def company() -> Iterator[None]:
    """Talk to the other processes; that one is gone is said in one line."""
    try:
        yield
    except (dist.DistError, RuntimeError) as error:
        # Torch's words stand behind the place in its sources.
        told = str(error).splitlines()[0].rpartition("] ")[2]
        raise UserError(f"Another process was lost or is late ({told}).") from None


def launched() -> bool:
    """Was this process started as one of several?"""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def own_device(device: str) -> str:
    """The device of this process: a card of its own, where there are cards."""
    if device == "cuda" and launched():
        return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    return device


@contextmanager
def joined(device: str = "cpu", *, patience: float = PATIENCE) -> Iterator[World]:
    """The world that a launcher described in the environment, while the block runs.

    Where something is wrong everywhere, only one process says so.
    """
    if not launched():
        yield World()
        return
    store = meet(torch.device(device), timedelta(seconds=patience))
    try:
        with _own_cores():
            yield World.here()
    except UserError:
        if _told_already(store):
            raise SystemExit(1) from None
        raise
    finally:
        dist.destroy_process_group()


def _told_already(store: Store) -> bool:
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
def _own_cores() -> Iterator[None]:
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
def one_first(world: World) -> Iterator[None]:
    """Let one process of each host do what the others then find done."""
    waits = os.environ.get("LOCAL_RANK", "0") != "0"
    if waits:
        world.gather(None)
    yield
    if not waits:
        world.gather(None)
