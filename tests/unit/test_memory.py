"""Memory: the tightest of all limits around a process counts."""

import pytest
import torch

from unalike import control_groups, memory
from unalike.memory import LEDGERS, Ledger, free_memory

GIB = 2**30


@pytest.fixture
def machine(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text(f"MemAvailable: {8 * GIB // 1024} kB\n")
    monkeypatch.setattr(memory, "MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(control_groups, "OWN", tmp_path / "cgroup")
    return tmp_path


def keep_ledger(ledger, folder, *, limit, used, idle):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ledger.limit).write_text(f"{limit}\n")
    (folder / ledger.used).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"rss 1\n{ledger.idle} {idle}\n")


def left():
    return free_memory(torch.device("cpu"))


def test_a_machine_without_groups(machine):
    assert left() == 8 * GIB


@pytest.mark.parametrize("controllers", sorted(LEDGERS))
def test_a_job_inside_a_container(controllers, machine, monkeypatch):
    names = LEDGERS[controllers]
    ledger = Ledger(machine / "groups", names.limit, names.used, names.idle)
    monkeypatch.setattr(memory, "LEDGERS", {controllers: ledger})
    (machine / "cgroup").write_text(f"7:{controllers}:/job/step\n3:cpu:/\n")
    assert left() == 8 * GIB
    keep_ledger(
        ledger, machine / "groups" / "job" / "step", limit="max", used=1, idle=0
    )
    assert left() == 8 * GIB
    keep_ledger(ledger, machine / "groups" / "job", limit=5 * GIB, used=GIB, idle=0)
    assert left() == 4 * GIB
    keep_ledger(ledger, machine / "groups", limit=4 * GIB, used=3 * GIB, idle=2 * GIB)
    assert left() == 3 * GIB
