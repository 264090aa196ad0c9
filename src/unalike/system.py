"""The cache: the user's own folder for what can be made again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import torch

from unalike.progress import Progress

# The cache: the user's own folder for what can be made again.


def cache_dir() -> Path:
    """Where that folder is."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "unalike"


# Control groups: where Linux notes what containers and jobs may use.


CGROUP_ROOT = Path("/sys/fs/cgroup")
PROC_CGROUP = Path("/proc/self/cgroup")


def process_cgroups() -> Iterator[tuple[str, str]]:
    """The groups of this process, each behind the controllers that it is about."""
    for line in PROC_CGROUP.read_text().splitlines() if PROC_CGROUP.exists() else []:
        _, controllers, group = line.split(":", 2)
        yield controllers, group


def with_parents(root: Path, group: str) -> Iterator[Path]:
    """The folder of a group, and those of the groups around it."""
    inner = root / group.strip("/")
    yield from (inner, *inner.parents)


# Cores: how many of the processor this process may use.


def num_cores() -> int:
    """Cores that are allowed to this process, by the tightest limit around it.

    A container may show all cores of its machine and be given the time of a few: who
    starts a thread for each then mostly waits.
    """
    if hasattr(os, "sched_getaffinity"):
        shown = len(os.sched_getaffinity(0))
    else:
        shown = os.cpu_count() or 1
    return max(1, min([shown, *(ceil(quota) for quota in cpu_quotas())]))


def cpu_quotas() -> Iterator[float]:
    """The cores that control groups of both versions leave to this process."""
    for controllers, group in process_cgroups():
        root = CGROUP_ROOT / "cpu" if "cpu" in controllers.split(",") else CGROUP_ROOT
        for folder in with_parents(root, group):
            yield from _quota(folder)


def _quota(folder: Path) -> Iterator[float]:
    both, quota = folder / "cpu.max", folder / "cpu.cfs_quota_us"
    if both.exists():
        times = both.read_text().split()
    elif quota.exists():
        times = [quota.read_text(), (folder / "cpu.cfs_period_us").read_text()]
    else:
        return
    if (used := times[0].strip()).isdigit():
        yield int(used) / int(times[1])


# Memory: how much of it a device has left.


MEMINFO = Path("/proc/meminfo")
SIGNIFICANT_SHARE = 0.05
"""Share of a card's memory that is worth waiting for; programs take less besides."""
POLL_SECONDS = 1.0
"""Between two looks at what others hold."""
TIMEOUT_SECONDS = 600.0
"""How long others may hold what is waited for."""


@dataclass(frozen=True)
class CgroupMemory:
    """Where Linux notes what a group of processes may use of memory, and uses."""

    root: Path
    limit: str
    used: str
    idle: str
    """Files that were read lie in memory only until somebody needs it."""

    def available(self, group: str) -> Iterator[int]:
        """What the limits of a group, and of those around it, leave."""
        for folder in with_parents(self.root, group):
            limit = folder / self.limit
            if limit.exists() and (most := limit.read_text().strip()).isdigit():
                used = int((folder / self.used).read_text())
                yield int(most) - used + _number(folder / "memory.stat", self.idle)


CGROUP_MEMORY = {
    "": CgroupMemory(CGROUP_ROOT, "memory.max", "memory.current", "inactive_file"),
    "memory": CgroupMemory(
        CGROUP_ROOT / "memory",
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
    return min(free, process_memory_limit(device)) + reserve


def process_memory_limit(device: torch.device) -> int:
    """Bytes of a card that this process may still take, if nobody else has them."""
    _, total = torch.cuda.mem_get_info(device)
    card = torch.cuda.current_device() if device.index is None else device.index
    share = torch.cuda.get_per_process_memory_fraction(card)
    return int(share * total) - torch.cuda.memory_reserved(device)


def memory_used_by_others(device: torch.device) -> int:
    """Bytes of a card that this process might take, were they not taken; 0 if few."""
    if device.type != "cuda":
        return 0
    free, total = torch.cuda.mem_get_info(device)
    held = process_memory_limit(device) - free
    return held if held > SIGNIFICANT_SHARE * total else 0


def wait_for_memory(device: torch.device, progress: Progress) -> bool:
    """Wait for memory that others hold; have they let go of some?"""
    held = memory_used_by_others(device)
    if not held:
        return False
    _, total = torch.cuda.mem_get_info(device)
    progress.stage("waiting for memory that other programs hold", None, "s")
    until = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < until:
        time.sleep(POLL_SECONDS)
        progress.advance(POLL_SECONDS)
        if memory_used_by_others(device) < held - SIGNIFICANT_SHARE * total:
            return True
    return False


def machine_memory() -> Iterator[int]:
    """What the machine has left, and what containers and jobs may take of it."""
    if MEMINFO.exists():
        yield 1024 * _number(MEMINFO, "MemAvailable:")
    else:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for controllers, group in process_cgroups():
        if controllers in CGROUP_MEMORY:
            yield from CGROUP_MEMORY[controllers].available(group)


def _number(file: Path, name: str) -> int:
    lines = map(str.split, file.read_text().splitlines())
    return next(int(words[1]) for words in lines if words[0] == name)


# Processes


def is_process_alive(pid: int) -> bool:
    """Whether a process of this machine runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return False
    # The state follows the program name, which is in brackets and may contain any
    # character.
    return status.rpartition(")")[2].split()[0] in ("Z", "X")
