"""The cost model: amounts, fits and predictions."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unalike import UserError
from unalike.bench.cost_model import TERMS, Cluster, MemoryModel, TimeModel, Workload

BASE = Workload(
    nodes=60_000,
    entries=1_200_000,
    features=16,
    train=30_000,
    valid=15_000,
    hidden=32,
    rows=2_000,
    processes=1,
)
LOADS = [
    replace(
        BASE, processes=n, hidden=hidden, rows=rows, oversubscription=max(1.0, n / 2)
    )
    for n, hidden, rows in product((1, 2, 4), (32, 128), (2_000, 10_000))
]
RATES = {
    "gather": 1e-9,
    "move": 2e-9,
    "dense": 1e-10,
    "step": 5e-3,
    "byte": 1e-9,
    "message": 1e-4,
}
times = st.floats(0.2, 5.0)


@given(st.fixed_dictionaries(dict.fromkeys(TERMS, times)))
@settings(max_examples=50)
def test_rates_are_recovered_from_times(factors):
    true = TimeModel({term: RATES[term] * factors[term] for term in TERMS})
    found = TimeModel.fit(LOADS, [true.seconds(load) for load in LOADS])
    assert found.rates == pytest.approx(true.rates, rel=1e-3)


@given(st.floats(1.0, 30.0), st.floats(1e8, 1e9))
@settings(max_examples=50)
def test_memory_is_recovered_from_peaks(copies, program):
    true = MemoryModel(40.0, copies, program)
    peaks = [true.peak(load) for load in LOADS]
    found = MemoryModel.fit(LOADS, peaks, 40.0)
    assert vars(found) == pytest.approx(vars(true), rel=1e-6)


def test_batches_of_one_size_use_the_default_copies():
    loads = [load for load in LOADS if load.hidden == 32]
    true = MemoryModel(40.0, 10.0, 3e8)
    found = MemoryModel.fit(loads, [true.peak(load) for load in loads], 40.0)
    assert vars(found) == pytest.approx(vars(true))


def test_one_process_sends_nothing():
    amounts = BASE.amounts()
    assert amounts["byte"] == amounts["message"] == 0
    assert amounts["gather"] == (2 * 30_000 + 15_000) * 20 * 32
    assert amounts["move"] == 15 * 60_000 * 32


def test_processes_divide_the_table_and_repeat_the_dense_layers():
    alone, four = BASE.amounts(), replace(BASE, processes=4).amounts()
    assert four["move"] == alone["move"] / 4
    assert four["dense"] == alone["dense"]
    # Nine chunks of the validation and one of a step go through four processes.
    assert alone["gather"] / 4 < four["gather"] < alone["gather"]


def test_all_processes_wait_for_a_single_chunk():
    alone = replace(BASE, valid=0)
    two = replace(alone, processes=2)
    forward, backward = 30_000 * 20 * 32, 30_000 * 20 * 32
    assert alone.amounts()["gather"] == forward + backward
    assert two.amounts()["gather"] == forward + backward / 2
    assert two.amounts()["message"] == 15 * 3
    assert two.amounts()["byte"] == 30_000 * 32 * 4 * 3


def test_hosts_divide_the_table_but_not_the_node_arrays():
    seconds, memory = TimeModel(RATES), MemoryModel(40.0, 10.0, 5e8)
    prediction = Cluster(hosts=64).predict(seconds, memory, LOADS[-1])
    rows = {row["hosts"]: row for row in prediction["by_hosts"]}
    assert [*rows] == [4, 8, 16, 32, 64, 128, 256]
    held = {hosts: row["bytes_by"] for hosts, row in rows.items()}
    assert held[64]["table"] == 1_000_000_000 * 128 * 16 / 64
    assert held[64]["edges"] == 200_000_000_000 * 4 / 64
    assert held[64]["nodes"] == held[4]["nodes"] == 40e9
    assert prediction["steps"] == 500


def test_a_faster_network_shortens_only_sending():
    seconds, memory = TimeModel(RATES), MemoryModel(40.0, 10.0, 5e8)
    slow, fast = (
        Cluster(bandwidth=bandwidth).predict(seconds, memory, LOADS[-1])["by_hosts"][-1]
        for bandwidth in (10.0, 100.0)
    )
    sent = slow["seconds_by"]["byte"]
    assert fast["seconds_by"]["byte"] == pytest.approx(sent / 10)
    assert slow["seconds"] - fast["seconds"] == pytest.approx(0.9 * sent)


@pytest.mark.parametrize("name", ["hosts", "bandwidth", "nodes"])
def test_zero_sizes_of_a_cluster_are_refused(name):
    with pytest.raises(UserError, match=f"--{name} is 0"):
        Cluster(**{name: 0.0 if name == "bandwidth" else 0})
