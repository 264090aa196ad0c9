"""Memory: how much of it a device has left."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from unalike.control_groups import ROOT, around, own_groups
from unalike.progress import Progress

MACHINE = Path("/proc/meminfo")
MUCH = 0.05
"""Share of a card's memory that is worth waiting for; programs take less besides."""
GLANCE_SECONDS = 1.0
"""Between two looks at what others hold."""
PATIENCE_SECONDS = 600.0
"""How long others may hold what is waited for."""


@dataclass(frozen=True)
class Ledger:
    """Where Linux notes what a group of processes may use of memory, and uses."""

    root: Path
    limit: str
    used: str
    idle: str
    """Files that were read lie in memory only until somebody needs it."""

    def left(self, group: str) -> Iterator[int]:
        """What the limits of a group, and of those around it, leave."""
        for folder in around(self.root, group):
            limit = folder / self.limit
            if limit.exists() and (most := limit.read_text().strip()).isdigit():
                used = int((folder / self.used).read_text())
                yield int(most) - used + _number(folder / "memory.stat", self.idle)


LEDGERS = {
    "": Ledger(ROOT, "memory.max", "memory.current", "inactive_file"),
    "memory": Ledger(
        ROOT / "memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}
"""Of both versions of control groups, by the controllers that they name."""


def free_memory(device: torch.device) -> int:
    """Bytes that may still be used, those that torch holds in reserve included."""
    if device.type != "cuda":
        return min(machine_memory())
    free, _ = torch.cuda.mem_get_info(device)
    reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return min(free, allowance(device)) + reserve


def allowance(device: torch.device) -> int:
    """Bytes of a card that this process may still take, if nobody else has them."""
    _, total = torch.cuda.mem_get_info(device)
    card = torch.cuda.current_device() if device.index is None else device.index
    share = torch.cuda.get_per_process_memory_fraction(card)
    return int(share * total) - torch.cuda.memory_reserved(device)


def held_by_others(device: torch.device) -> int:
    """Bytes of a card that this process might take, were they not taken; 0 if few."""
    if device.type != "cuda":
        return 0
    free, total = torch.cuda.mem_get_info(device)
    held = allowance(device) - free
    return held if held > MUCH * total else 0


def outlast_others(device: torch.device, progress: Progress) -> bool:
    """Wait for memory that others hold; have they let go of some?"""
    held = held_by_others(device)
    if not held:
        return False
    _, total = torch.cuda.mem_get_info(device)
    progress.stage("waiting for memory that other programs hold", None, "s")
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        time.sleep(GLANCE_SECONDS)
        progress.advance(GLANCE_SECONDS)
        if held_by_others(device) < held - MUCH * total:
            return True
    return False


def machine_memory() -> Iterator[int]:
    """What the machine has left, and what containers and jobs may take of it."""
    if MACHINE.exists():
        yield 1024 * _number(MACHINE, "MemAvailable:")
    else:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for controllers, group in own_groups():
        if controllers in LEDGERS:
            yield from LEDGERS[controllers].left(group)


def _number(file: Path, name: str) -> int:
    lines = map(str.split, file.read_text().splitlines())
    return next(int(words[1]) for words in lines if words[0] == name)
