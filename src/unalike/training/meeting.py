"""Meeting: how processes that were started together find each other."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from uuid import uuid4

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from unalike.errors import UserError

AT = ("ADDR", "PORT")
LEADER = "leader"
GLANCE_SECONDS = 0.02
"""Between two looks at whether the first process has come."""


def meet(device: torch.device, patience: timedelta) -> Store:
    """Join the others, and return the notes that all of them can read."""
    try:
        store, rank, size = next(rendezvous("env://", timeout=patience))
        name = lead(store, size) if rank == 0 else follow(store, rank, patience)
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


def lead(store: Store, size: int) -> str:
    """Tell every other process, once it has come, the name of this meeting.

    Processes that replace lost ones are given the notes of those: whoever reads there
    where to find another may look for the dead. So each meeting has notes of its own.
    """
    name = uuid4().hex
    store.set(LEADER, name)
    for rank in range(1, size):
        store.set(store.get(f"{name}/{rank}").decode(), name)
    return name


def follow(store: Store, rank: int, patience: timedelta) -> str:
    """The name of this meeting, told by its leader and by none that led before."""
    own, until = uuid4().hex, time.monotonic() + patience.total_seconds()
    while not store.check([own]):
        if time.monotonic() > until:
            raise dist.DistStoreError("the first process did not come")
        store.set(f"{store.get(LEADER).decode()}/{rank}", own)
        time.sleep(GLANCE_SECONDS)
    return store.get(own).decode()
