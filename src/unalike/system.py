"""CPU count, free memory, cgroup limits, cache and data folders, live processes."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from pathlib import Path

import torch

from unalike.errors import UserError
from unalike.progress import Progress


def cache_dir() -> Path:
    """The user's cache folder, `$XDG_CACHE_HOME/unalike`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "unalike"


def data_root(data: Path | None = None) -> Path:
    """The folder of raw files: the argument, else $UNALIKE_DATA, else the cache."""
    path = data or os.environ.get("UNALIKE_DATA")
    return (Path(path).expanduser() if path else cache_dir() / "data").absolute()


def stored_folders(root: Path, name: str) -> Iterator[Path]:
    """Folders that may contain the stored graph of a dataset: in the root or cache."""
    yield root / "stored" / name
    key = sha256(os.fsencode(root.resolve())).hexdigest()[:12]
    yield cache_dir() / "stored" / key / name


def writable_stored_folder(name: str, data: Path | None = None) -> Path:
    """The first of these folders that can be written."""
    root = data_root(data)
    for folder in stored_folders(root, name):
        if is_writable(folder.parent):
            return folder
    raise UserError(f"Neither {root} nor {cache_dir()} can be written.")


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, or in its nearest parent that exists.

    A folder without any write bit is read-only for the superuser too, because its
    owner does not want files in it.
    """
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK) and bool(folder.stat().st_mode & 0o222)


# Control groups of Linux, which limit containers and jobs.


CGROUP_ROOT = Path("/sys/fs/cgroup")
PROC_CGROUP = Path("/proc/self/cgroup")


def process_cgroups() -> Iterator[tuple[str, str]]:
    """Controllers and path of each control group of this process."""
    for line in PROC_CGROUP.read_text().splitlines() if PROC_CGROUP.exists() else []:
        _, controllers, group = line.split(":", 2)
        yield controllers, group


def with_parents(root: Path, group: str) -> Iterator[Path]:
    """The folder of a group and those of its parents."""
    inner = root / group.strip("/")
    yield from (inner, *inner.parents)


# CPU.


def num_cores() -> int:
    """CPU cores that this process may use, by the tightest limit.

    A container may show all cores of a machine and have a quota of a few: with a thread
    for each core, threads mostly wait.
    """
    if hasattr(os, "sched_getaffinity"):
        visible = len(os.sched_getaffinity(0))
    else:
        visible = os.cpu_count() or 1
    return max(1, min([visible, *(ceil(quota) for quota in cpu_quotas())]))


def cpu_quotas() -> Iterator[float]:
    """CPU quotas, in cores, of all control groups (version 1 and 2)."""
    for controllers, group in process_cgroups():
        root = CGROUP_ROOT / "cpu" if "cpu" in controllers.split(",") else CGROUP_ROOT
        for folder in with_parents(root, group):
            fields = ["max"]
            if (folder / "cpu.max").exists():
                fields = (folder / "cpu.max").read_text().split()
            elif (folder / "cpu.cfs_quota_us").exists():
                names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
                fields = [(folder / name).read_text().strip() for name in names]
            if fields[0].isdigit():
                yield int(fields[0]) / int(fields[1])


# Memory.


MEMINFO = Path("/proc/meminfo")
SIGNIFICANT_SHARE = 0.05
"""Fraction of GPU memory that is worth waiting for; CUDA contexts take less."""
POLL_SECONDS = 1.0
"""Interval of checks for free GPU memory."""
TIMEOUT_SECONDS = 600.0
"""How long to wait for GPU memory that other processes use."""


@dataclass(frozen=True)
class CgroupMemory:
    """Files with the memory limit and usage of a control group."""

    root: Path
    limit: str
    used: str
    idle: str
    """Key of the file cache, which is freed when memory is needed."""

    def available(self, group: str) -> Iterator[int]:
        """Bytes that the limits of a group and of its parents leave."""
        for folder in with_parents(self.root, group):
            limit = folder / self.limit
            if limit.exists() and (size := limit.read_text().strip()).isdigit():
                used = int((folder / self.used).read_text())
                yield int(size) - used + number_in(folder / "memory.stat", self.idle)


CGROUP_MEMORY = {
    "": CgroupMemory(CGROUP_ROOT, "memory.max", "memory.current", "inactive_file"),
    "memory": CgroupMemory(
        CGROUP_ROOT / "memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}
"""Files of cgroup version 2 and 1, by controllers in /proc/self/cgroup."""


def free_memory(device: torch.device) -> int:
    """Bytes that this process may still use, with those that torch has in reserve."""
    if device.type != "cuda":
        return min(machine_memory())
    free, _ = torch.cuda.mem_get_info(device)
    reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return min(free, process_memory_limit(device)) + reserve


def process_memory_limit(device: torch.device) -> int:
    """Bytes of GPU memory below the per-process limit, used by others or not."""
    _, total = torch.cuda.mem_get_info(device)
    index = torch.cuda.current_device() if device.index is None else device.index
    fraction = torch.cuda.get_per_process_memory_fraction(index)
    return int(fraction * total) - torch.cuda.memory_reserved(device)


def memory_used_by_others(device: torch.device) -> int:
    """Bytes of GPU memory that other processes take from this one; 0 if few."""
    if device.type != "cuda":
        return 0
    free, total = torch.cuda.mem_get_info(device)
    used = process_memory_limit(device) - free
    return used if used > SIGNIFICANT_SHARE * total else 0


def wait_for_memory(device: torch.device, progress: Progress) -> bool:
    """Wait for GPU memory that other processes use; True if some was freed."""
    used = memory_used_by_others(device)
    if not used:
        return False
    _, total = torch.cuda.mem_get_info(device)
    progress.stage("waiting for memory that other programs use", None, "s")
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        progress.advance(POLL_SECONDS)
        if memory_used_by_others(device) < used - SIGNIFICANT_SHARE * total:
            return True
    return False


def machine_memory() -> Iterator[int]:
    """Free bytes of the machine, and bytes that each control group leaves."""
    if MEMINFO.exists():
        yield 1024 * number_in(MEMINFO, "MemAvailable:")
    else:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for controllers, group in process_cgroups():
        if controllers in CGROUP_MEMORY:
            yield from CGROUP_MEMORY[controllers].available(group)


def number_in(file: Path, name: str) -> int:
    """The number after a name at the start of a line."""
    lines = map(str.split, file.read_text().splitlines())
    return next(int(fields[1]) for fields in lines if fields[0] == name)


# Processes


BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PID_NAMESPACE = Path("/proc/self/ns/pid")


def process_id_scope() -> str:
    """The machine, since its last start, and the container that a process id is of.

    Containers and machines may have the same host name.
    """
    if not (BOOT_ID.exists() and PID_NAMESPACE.is_symlink()):
        return f"{uuid.getnode():x}"
    return f"{BOOT_ID.read_text().strip()}-{PID_NAMESPACE.readlink()}"


def is_process_alive(pid: int) -> bool:
    """Whether a process of this machine runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
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
