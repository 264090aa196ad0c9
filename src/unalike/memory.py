"""Memory: how much of it a device has left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import torch

MACHINE = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")


def free_memory(device: torch.device) -> int:
    """Bytes that may still be used, those that torch holds in reserve included."""
    if device.type != "cuda":
        return min(machine_memory())
    free, _ = torch.cuda.mem_get_info(device)
    reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free + reserve


def machine_memory() -> Iterator[int]:
    """What the machine has left, and what a container is allowed to take of it."""
    if MACHINE.exists():
        yield 1024 * _number(MACHINE, "MemAvailable:")
    else:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit, used = GROUP / "memory.max", GROUP / "memory.current"
    if limit.exists() and (most := limit.read_text().strip()).isdigit():
        # Files that were read lie in memory only until somebody needs it.
        held = int(used.read_text()) - _number(GROUP / "memory.stat", "inactive_file")
        yield int(most) - held


def _number(file: Path, name: str) -> int:
    lines = map(str.split, file.read_text().splitlines())
    return next(int(words[1]) for words in lines if words[0] == name)
