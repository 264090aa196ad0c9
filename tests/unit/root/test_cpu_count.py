"""Cores: the tightest of all limits around a process counts."""

import os

import pytest

from unalike import system
from unalike.system import num_cores


@pytest.fixture
def groups(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "CGROUP_ROOT", tmp_path / "groups")
    monkeypatch.setattr(system, "PROC_CGROUP", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    return tmp_path


def limit(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(f"{text}\n")


def test_a_machine_without_groups(groups):
    assert num_cores() == 64


def test_a_job_inside_a_container(groups):
    (groups / "own").write_text("0::/box/job\n")
    limit(groups / "groups" / "box" / "job", cpu_max="max 100000")
    assert num_cores() == 64
    limit(groups / "groups" / "box", cpu_max="1600000 100000")
    assert num_cores() == 16
    limit(groups / "groups", cpu_max="250000 100000")
    assert num_cores() == 3


def test_the_older_groups(groups):
    (groups / "own").write_text("5:memory:/box\n4:cpuacct,cpu:/box\n")
    box = groups / "groups" / "cpu" / "box"
    limit(box, cpu_cfs_quota_us=-1, cpu_cfs_period_us=100000)
    assert num_cores() == 64
    limit(box, cpu_cfs_quota_us=50000, cpu_cfs_period_us=100000)
    assert num_cores() == 1
