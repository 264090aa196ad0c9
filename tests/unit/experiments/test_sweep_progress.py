"""Progress of a sweep, and what it waits for."""

import time
from itertools import pairwise

from unalike.experiments import sweep as sweeps
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.sweep import sweep
from unalike.progress import NO_PROGRESS


def test_progress_tells_what_is_done_and_the_best(plan, url):
    events = []

    class Listener:
        def stage(self, what, total, unit):
            events.append((what, total, unit))

        def advance(self, amount, note=""):
            events.append((amount, note))

    sweep(plan, url, progress=Listener())
    assert events[0] == ("sweep", 36, "runs")
    assert sum(amount for amount, _ in events[1:]) == 36
    assert "0 failed, best small linkx" in events[-1][1]


def test_what_a_stack_waits_for_is_reported(plan, results):
    events = []

    class Listener:
        def stage(self, what, total, unit):
            pass

        def advance(self, amount, note=""):
            events.append(note)

    within = sweeps.NestedProgress(sweeps.SweepProgress(plan, results, Listener()))
    within.stage("waiting for memory", None, "s")
    within.advance(60.0)
    assert events == ["60 s waiting for memory"]


def test_looks_at_a_slow_database_are_few(plan, url, monkeypatch):
    looks = []
    best_message = sweeps.best_message

    def slow(results):
        looks.append(time.monotonic())
        time.sleep(0.05)
        return best_message(results)

    monkeypatch.setattr(sweeps, "best_message", slow)
    monkeypatch.setattr(sweeps, "WATCH_SECONDS", 0.0)
    with ResultsDatabase.open(url) as results:
        progress = sweeps.SweepProgress(plan, results, NO_PROGRESS)
        progress.begin()
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            progress.refresh("something")
    pauses = [after - before for before, after in pairwise(looks)]
    assert looks
    assert all(pause > 0.05 * sweeps.POLL_FACTOR for pause in pauses)
