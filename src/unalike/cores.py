"""Cores: how many of the processor this process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import ceil
from pathlib import Path

from unalike.control_groups import ROOT, around, own_groups


def num_cores() -> int:
    """Cores that are allowed to this process, by the tightest limit around it.

    A container may show all cores of its machine and be given the time of a few: who
    starts a thread for each then mostly waits.
    """
    if hasattr(os, "sched_getaffinity"):
        shown = len(os.sched_getaffinity(0))
    else:
        shown = os.cpu_count() or 1
    return max(1, min([shown, *(ceil(quota) for quota in quotas())]))


def quotas() -> Iterator[float]:
    """The cores that control groups of both versions leave to this process."""
    for controllers, group in own_groups():
        root = ROOT / "cpu" if "cpu" in controllers.split(",") else ROOT
        for folder in around(root, group):
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
