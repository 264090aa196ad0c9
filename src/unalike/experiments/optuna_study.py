"""An Optuna study: its sampler, its distributions, and earlier trials."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unalike.errors import require

if TYPE_CHECKING:
    import optuna

Params = Mapping[str, Any]
Value = float | None
"""The value of an objective; None for a trial that failed."""


def run_study(
    objective: Callable[[Params], Value],
    space: Mapping[str, Any],
    *,
    trials: int,
    seed: int,
    previous: Sequence[tuple[Params, float]] = (),
    on_trial: Callable[[optuna.Study, Value], None],
    deadline: float | None = None,
) -> optuna.Study:
    """Maximise an objective with Optuna's TPE sampler, after some previous trials.

    No trial begins after the deadline, a time of `time.monotonic`.
    """
    optuna = load_optuna()
    study = study_of(space, previous, optuna.samplers.TPESampler(seed=seed))
    for _, known in previous:
        on_trial(study, known)
    for _ in range(len(previous), trials):
        if deadline is not None and time.monotonic() > deadline:
            break
        trial = study.ask(dict(space))
        value = objective(trial.params)
        failed = optuna.trial.TrialState.FAIL if value is None else None
        study.tell(trial, value, state=failed)
        on_trial(study, value)
    return study


def study_of(
    space: Mapping[str, Any],
    trials: Sequence[tuple[Params, float]],
    sampler: optuna.samplers.BaseSampler | None = None,
) -> optuna.Study:
    """A study with some finished trials."""
    optuna = load_optuna()
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for params, value in trials:
        study.add_trial(
            optuna.trial.create_trial(
                params=dict(params), distributions=dict(space), value=value
            )
        )
    return study


def load_optuna() -> Any:
    """Import Optuna and silence its messages."""
    optuna = require("optuna", "tune", "Tuning needs Optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def distribution(values: list[Any]) -> Any:
    """The Optuna distribution of an option: a range of numbers, or categories."""
    from optuna import distributions

    if isinstance(values[0], Mapping):
        return distributions.FloatDistribution(**values[0])
    if any(isinstance(value, bool | str) for value in values):
        return distributions.CategoricalDistribution(values)
    integers = all(isinstance(value, int) for value in values)
    kind = (
        distributions.IntDistribution if integers else distributions.FloatDistribution
    )
    return kind(min(values), max(values), log=min(values) > 0)
