"""Rendezvous of processes on a store that earlier processes have used."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from torch.distributed import DistStoreError, TCPStore

from unalike.training.distributed import announce, wait_for_leader

SECOND = timedelta(seconds=1)


@pytest.fixture
def store():
    return TCPStore("127.0.0.1", 0, is_master=True, timeout=SECOND)


def met(server, *, late):
    """The prefixes that rank 0 and two others agree on."""

    def own():
        return TCPStore("127.0.0.1", server.port, is_master=False, timeout=10 * SECOND)

    def come_last():
        time.sleep(late)
        return announce(own(), 3)

    with ThreadPoolExecutor() as pool:
        others = [
            pool.submit(wait_for_leader, own(), rank, 10 * SECOND) for rank in (1, 2)
        ]
        first = pool.submit(come_last)
        return {one.result() for one in (first, *others)}


@pytest.mark.parametrize("late", [0.0, 0.3])
def test_all_get_one_prefix_and_none_of_an_earlier_rendezvous(store, late):
    names = [met(store, late=late) for _ in range(3)]
    assert all(len(one) == 1 for one in names)
    assert len(set.union(*names)) == 3


def test_waiting_has_a_timeout(store):
    store.set("leader", "who left")
    with pytest.raises(DistStoreError, match="did not start"):
        wait_for_leader(store, 1, timedelta(seconds=0.2))
    with pytest.raises(DistStoreError, match=r"wait timeout|Timeout|timed out"):
        announce(store, 2)
