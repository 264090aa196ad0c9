"""Items made ahead by a thread: the same ones, and no thread left behind."""

import signal
import threading
import time
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unalike.parallel import Prefetch


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("prefetch")]


class Source:
    """Counts upwards, knows what it has made and whether it was closed."""

    def __init__(self, fails_at=None):
        self.fails_at, self.made, self.closed = fails_at, 0, False

    def __iter__(self):
        try:
            for item in count():
                if item == self.fails_at:
                    raise ValueError(f"no item {item}")
                self.made += 1
                yield item
        finally:
            self.closed = True


@given(st.lists(st.one_of(st.none(), st.integers())), st.integers(0, 3))
def test_the_same_items_in_the_same_order(items, depth):
    ahead = Prefetch(items, depth)
    assert list(ahead) == items
    assert list(ahead) == items


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_no_more_is_made_than_the_depth_allows(depth):
    source = Source()
    for item in Prefetch(source, depth):
        began = time.monotonic()
        while source.made < item + 1 + depth:
            assert time.monotonic() - began < 10
        time.sleep(0.01)
        assert source.made == item + 1 + depth
        if item == 3:
            break


def test_the_next_item_is_made_by_another_thread_while_one_is_used():
    both = threading.Barrier(2, timeout=10)

    def items():
        yield threading.get_ident()
        both.wait()
        yield threading.get_ident()

    seen = []
    for maker in Prefetch(items()):
        if not seen:
            both.wait()
        seen.append(maker)
    assert len(set(seen)) == 1
    assert threading.get_ident() not in seen


@pytest.mark.parametrize("depth", [1, 2])
def test_an_error_of_the_source_comes_after_the_items_before_it(depth):
    source, seen = Source(fails_at=3), []
    with pytest.raises(ValueError, match="no item 3"):
        seen.extend(Prefetch(source, depth))
    assert seen == [0, 1, 2]
    assert source.closed


def test_who_stops_early_closes_the_source():
    source = Source()
    items = iter(Prefetch(source))
    assert next(items) == 0
    items.close()
    assert source.closed


def test_an_error_or_interrupt_of_the_user_closes_the_source():
    source = Source()
    with pytest.raises(KeyboardInterrupt):
        for _ in Prefetch(source):
            raise KeyboardInterrupt
    assert source.closed


def test_an_interrupt_while_waiting_closes_the_source():
    closed = []

    def items():
        try:
            yield 0
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.1)
            yield 1
        finally:
            closed.append(True)

    with pytest.raises(KeyboardInterrupt):
        list(Prefetch(items()))
    assert closed


def test_waiting_is_counted_and_work_is_not():
    def slow():
        for item in range(3):
            time.sleep(0.02)
            yield item

    waiting = Prefetch(slow())
    assert list(waiting) == [0, 1, 2]
    assert waiting.wait_seconds > 0.04
    working = Prefetch(range(3))
    for _ in working:
        time.sleep(0.02)
    assert working.wait_seconds < waiting.wait_seconds
