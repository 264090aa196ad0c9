"""Rows of the database of results, made up."""

from unalike.experiments.agenda import Bundle, Run, Subject, run_key
from unalike.experiments.record import record
from unalike.experiments.result import Result
from unalike.experiments.setting import Setting, build

SUBJECT = Subject("texas", "texas", "abc", 3)


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
    setting = setting or Setting(build("linkx", options))
    key = run_key(setting.facts, subject.name, subject.hash, split, seed)
    run = Run(setting, split, key)
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
    return record(told, run, Bundle(subject, setting.shape, (run,)))
