"""Rows of the results database, made up."""

from unalike.experiments.config import Config, build_method
from unalike.experiments.database import to_row
from unalike.experiments.plan import DatasetRef, PlannedRun, RunGroup, run_key
from unalike.experiments.result import Result

COMMIT = "0" * 40
DATASET = DatasetRef("texas", "texas", "abc", 3)


def row_of(
    split=0,
    *,
    valid=50.0,
    test=40.0,
    seed=0,
    dataset=DATASET,
    config=None,
    answers=None,
    commit=COMMIT,
    **options,
):
    """A run as a sweep stores it, of LINKX unless a config is given."""
    config = config or Config(build_method("linkx", options))
    key = run_key(config.to_dict, dataset.name, dataset.hash, split, seed)
    run = PlannedRun(config, split, key)
    result = Result(
        dataset=dataset.name,
        method=config.to_dict["method"],
        options=config.to_dict["options"],
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
        view=config.view.overrides,
        answers=answers,
    )
    row = to_row(result, run, RunGroup(dataset, config.stack_key, (run,)))
    return {**row, "commit": commit}
