"""Rows of the database of results, made up."""

from unalike.experiments.config import Config, build_method
from unalike.experiments.database import to_row
from unalike.experiments.plan import DatasetRef, PlannedRun, RunGroup, run_key
from unalike.experiments.result import Result

SUBJECT = DatasetRef("texas", "texas", "abc", 3)


def row_of(
    split=0,
    *,
    valid=50.0,
    test=40.0,
    seed=0,
    subject=SUBJECT,
    setting=None,
    answers=None,
    **options,
):
    """A run as a sweep would keep it, of LINKX where no setting is given."""
    setting = setting or Config(build_method("linkx", options))
    key = run_key(setting.facts, subject.name, subject.hash, split, seed)
    run = PlannedRun(setting, split, key)
    told = Result(
        dataset=subject.name,
        method=setting.facts["method"],
        options=setting.facts["options"],
        metric="accuracy",
        split=split,
        seed=seed,
        train=90.0,
        valid=valid,
        test=test,
        best_epoch=2,
        seconds=1.5,
        peak_memory_mb=3.0,
        device="a cpu",
        versions={"torch": "2"},
        losses=[1.0, 0.5],
        grades=[0.25, 0.75],
        view=setting.view.changes,
        answers=answers,
    )
    return to_row(told, run, RunGroup(subject, setting.shape, (run,)))
