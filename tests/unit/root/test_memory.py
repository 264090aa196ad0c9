"""Memory: the tightest of all limits around a process counts."""

import pytest
import torch
from graphs import suiting

from unalike import system
from unalike.progress import NO_PROGRESS
from unalike.system import (
    CGROUP_MEMORY,
    CgroupMemory,
    free_memory,
    memory_used_by_others,
    wait_for_memory,
)
from unalike.training.memory import MAX_GRAPH_SHARE, move_if_fits

GIB = 2**30


@pytest.fixture
def machine(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text(f"MemAvailable: {8 * GIB // 1024} kB\n")
    monkeypatch.setattr(system, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(system, "PROC_CGROUP", tmp_path / "cgroup")
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


@pytest.mark.parametrize("controllers", sorted(CGROUP_MEMORY))
def test_a_job_inside_a_container(controllers, machine, monkeypatch):
    names = CGROUP_MEMORY[controllers]
    ledger = CgroupMemory(machine / "groups", names.limit, names.used, names.idle)
    monkeypatch.setattr(system, "CGROUP_MEMORY", {controllers: ledger})
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


CARD = torch.device("cuda")


@pytest.fixture
def gpu(monkeypatch):
    """A GPU of 100 GiB whose books a test writes itself."""
    books = {"free": 100 * GIB, "reserved": 0, "allocated": 0, "share": 1.0}
    answers = {
        "mem_get_info": lambda device: (books["free"], 100 * GIB),
        "memory_reserved": lambda device: books["reserved"],
        "memory_allocated": lambda device: books["allocated"],
        "current_device": lambda: 0,
        # The one of these that does not know a GPU without its index.
        "get_per_process_memory_fraction": lambda index: {0: books["share"]}[index],
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    return books


def test_a_process_has_what_is_free_and_what_it_holds_in_reserve(gpu):
    gpu.update(free=60 * GIB, reserved=30 * GIB, allocated=10 * GIB)
    assert free_memory(CARD) == 80 * GIB
    assert memory_used_by_others(CARD) == 10 * GIB


def test_a_process_has_no_more_than_its_share(gpu):
    gpu.update(free=60 * GIB, reserved=20 * GIB, allocated=20 * GIB, share=0.5)
    assert free_memory(CARD) == 30 * GIB
    assert memory_used_by_others(CARD) == 0


def test_a_graph_larger_than_the_share_of_a_process_stays_on_the_cpu(gpu):
    graph = suiting()
    num_bytes = graph.nbytes
    gpu.update(share=2 * num_bytes / (100 * GIB))
    assert free_memory(CARD) < num_bytes / MAX_GRAPH_SHARE
    assert move_if_fits(graph, CARD) is None


@pytest.mark.parametrize(
    ("frees", "succeeds"), [([40, 44, 46], True), ([40, 44, 30], False)]
)
def test_memory_is_waited_for_while_others_hold_much_of_it(
    frees, succeeds, gpu, monkeypatch
):
    first, *later = frees
    gpu["free"] = first * GIB

    def pass_time(_):
        gpu["free"] = (later.pop(0) if later else 0) * GIB

    monkeypatch.setattr(system, "TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(system.time, "sleep", pass_time)
    assert wait_for_memory(CARD, NO_PROGRESS) == succeeds
    assert not later


def test_little_that_others_hold_is_not_waited_for(gpu, monkeypatch):
    gpu["free"] = 96 * GIB
    assert memory_used_by_others(CARD) == 0
    monkeypatch.setattr(system.time, "sleep", lambda _: pytest.fail("waited"))
    assert not wait_for_memory(CARD, NO_PROGRESS)


def test_nobody_else_holds_the_memory_of_a_processor():
    assert memory_used_by_others(torch.device("cpu")) == 0
