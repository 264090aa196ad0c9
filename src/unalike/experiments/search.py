"""Search: settings that a searcher proposes, as an alternative to a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import mean
from typing import Any

from unalike.errors import UserError, lookup
from unalike.experiments.agenda import (
    Agenda,
    Bundle,
    Order,
    Subject,
    runs_of,
    subject_of,
)
from unalike.experiments.bases import Bases
from unalike.experiments.recipe import Cell, Recipe
from unalike.experiments.results import Results
from unalike.experiments.run import Place
from unalike.experiments.select import Tried, complete, select, tried
from unalike.experiments.setting import Setting, revived
from unalike.experiments.space import Space
from unalike.experiments.sweep import Crew
from unalike.experiments.worker import Worker
from unalike.progress import SILENT, Progress


@dataclass(frozen=True)
class Hunt:
    """Who proposes, and how many settings of a cell are tried."""

    searcher: str
    trials: int


def search_all(
    order: Order,
    hunt: Hunt,
    url: str,
    *,
    crew: Crew | None = None,
    progress: Progress = SILENT,
) -> list[dict[str, Any]]:
    """Search every cell of an order; the best setting of each."""
    lookup(SEARCHERS, hunt.searcher, "searcher")
    crew = crew or Crew()
    if crew.jobs > 1:
        raise UserError("A search asks after each answer: it takes --jobs 1.")
    with Results.open(url) as results:
        bases = Bases()
        desks = list(desks_of(order, results, crew, bases))
        return [one for desk in desks for one in hunt_at(desk, hunt, progress)]


def desks_of(
    order: Order, results: Results, crew: Crew, bases: Bases
) -> Iterator[Desk]:
    """A place to try settings for every cell that is meant."""
    for recipe, cell in order.cells():
        subject = subject_of(cell.dataset, order.data)
        desk = Desk(order, recipe, cell, subject, results, crew, bases)
        if order.chosen(recipe, cell, desk.setting({})):
            yield desk


def hunt_at(desk: Desk, hunt: Hunt, progress: Progress) -> list[dict[str, Any]]:
    """Search one cell; its best setting, if any was complete."""
    search = lookup(SEARCHERS, hunt.searcher, "searcher")
    told = f"{desk.subject.name} {desk.recipe.method}"
    progress.stage(told, hunt.trials, "trials")
    for grade in search(desk, hunt.trials):
        progress.advance(1, f"valid {grade:.2f}" if grade else "failed")
    return desk.best()


@dataclass(frozen=True)
class Desk:
    """Where proposals for one cell are tried, and where past ones are kept."""

    order: Order
    recipe: Recipe
    cell: Cell
    subject: Subject
    results: Results
    crew: Crew
    bases: Bases
    """What was trained for earlier proposals."""

    @property
    def space(self) -> Space:
        return Space.of(self.recipe, self.cell, self.order.variant)

    def past(self) -> list[tuple[Tried, dict[str, Any]]]:
        """Complete settings of this cell in the database, with their options."""
        rows = self.results.runs(
            dataset_hash=self.subject.hash, method=str(self.recipe.method)
        )
        splits = min(
            self.cell.splits or self.subject.num_splits, self.subject.num_splits
        )
        found = []
        for one in complete(tried(rows), splits):
            options = one.runs[0]["options"]
            if not set(self.space.free) <= set(options):
                continue
            chosen = {name: options[name] for name in self.space.free}
            if self.setting(chosen).key == one.setting:
                found.append((one, chosen))
        return found

    def attempt(self, chosen: Mapping[str, Any]) -> float | None:
        """Run a proposal on every split; its mean validation grade if it succeeds."""
        setting = self.setting(chosen)
        runs = tuple(runs_of([setting], self.subject, self.cell, self.order.seed))
        bundle = Bundle(self.subject, setting.shape, runs)
        agenda = Agenda(bundles=[bundle], seed=self.order.seed, data=self.order.data)
        place = Place(device=self.crew.device)
        Worker(
            agenda,
            self.results,
            place,
            lease_seconds=self.crew.lease_seconds,
            bases=self.bases,
        ).work()
        rows = self.results.runs(setting=setting.key, dataset_hash=self.subject.hash)
        grades = [row["valid"] for row in rows if row["seed"] == self.order.seed]
        return mean(grades) if len(grades) == len(runs) else None

    def best(self) -> list[dict[str, Any]]:
        """The best setting so far, with what it reaches."""
        past = [one for one, _ in self.past()]
        if not (chosen := select(past)):
            return []
        return [
            {
                "dataset": self.subject.name,
                "method": self.recipe.method,
                "trials": len(past),
                "valid": chosen.valid,
                "test": chosen.test,
                "std": chosen.std,
                "options": revived(chosen.runs[0]).words(),
            }
        ]

    def setting(self, chosen: Mapping[str, Any]) -> Setting:
        """A proposal with what is fixed, as a setting."""
        return self.recipe.setting(self.cell, {**self.space.fixed, **chosen})


def by_optuna(desk: Desk, trials: int) -> Iterator[float | None]:
    """Proposals of Optuna's sampler, which learns from all past settings."""
    if not find_spec("optuna"):
        raise UserError("This search needs Optuna: pip install 'unalike[tune]'.")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = {name: distribution(told) for name, told in desk.space.free.items()}
    past = desk.past()
    sampler = optuna.samplers.TPESampler(seed=desk.order.seed + len(past))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for one, chosen in past:
        study.add_trial(
            optuna.trial.create_trial(
                params=chosen, distributions=space, value=one.valid
            )
        )
        yield one.valid
    failed = optuna.trial.TrialState.FAIL
    for _ in range(len(past), trials):
        trial = study.ask(space)
        grade = desk.attempt(trial.params)
        study.tell(trial, grade, state=failed if grade is None else None)
        yield grade


def distribution(values: list[Any]) -> Any:
    """Where Optuna may look: between the numbers of a grid, or among its words."""
    from optuna import distributions

    if isinstance(values[0], Mapping):
        return distributions.FloatDistribution(**values[0])
    if any(isinstance(value, bool | str) for value in values):
        return distributions.CategoricalDistribution(values)
    whole = all(isinstance(value, int) for value in values)
    kind = distributions.IntDistribution if whole else distributions.FloatDistribution
    return kind(min(values), max(values), log=min(values) > 0)


SEARCHERS: dict[str, Callable[[Desk, int], Iterable[float | None]]] = {
    "optuna": by_optuna
}
