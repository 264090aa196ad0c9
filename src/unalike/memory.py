"""Memory: how much of it a device has left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from unalike.control_groups import ROOT, around, own_groups

MACHINE = Path("/proc/meminfo")


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
    return free + reserve


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
