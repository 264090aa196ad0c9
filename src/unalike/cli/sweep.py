"""`unalike sweep`: run what recipes ask for and is not done yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike.cli.console import (
    DEFAULT_DATABASE,
    OUT,
    print_columns,
    print_json,
    print_notes,
    progress_bar,
)
from unalike.device import choose_device
from unalike.display import Column
from unalike.errors import UserError
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.plan import (
    SweepPlan,
    SweepRequest,
    parse_overrides,
    plan_sweep,
)
from unalike.experiments.plan import parse_filter as chosen_by
from unalike.experiments.recipe import find_recipes
from unalike.experiments.sweep import WorkerOptions, estimate, failed_before, sweep
from unalike.experiments.tuning import SearchOptions, search_cells


def command(
    recipes: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RECIPE …")
    ],
    /,
    *,
    only: tuple[str, ...] = (),
    on: tuple[str, ...] = (),
    options: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = (),
    variant: str = "",
    quoted: bool = False,
    search: str | None = None,
    trials: int = 100,
    jobs: int = 1,
    retry: bool = False,
    dry_run: bool = False,
    seed: int = 0,
    results: str = DEFAULT_DATABASE,
    device: str = "auto",
    lease: float = 60.0,
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Run what recipes ask for and is not done yet; it may be stopped at any time.

    Example: unalike sweep prior-datasets/linkx --only dataset=texas --dry-run

    Args:
        recipes: Tables, rows of tables (`unalike list recipes`), or files of recipes.
        only: Which cells and settings, as in method=linkx dataset=texas hidden=64.
        on: Run the grids on these datasets instead of those of the recipes.
        options: Options for all settings, as in epochs=100 precision=bf16.
        variant: The grid of this name where a recipe has one, as in appendix.
        quoted: Also run cells whose numbers the paper took from elsewhere.
        search: Try settings that this searcher proposes, not the grid: optuna.
        trials: How many settings of a cell a search tries, past ones included.
        jobs: Processes that share the work, and the memory of a card; others may join
            on the same results.
        retry: Run again what failed before.
        dry_run: Show what would be run, with its memory and time as far as known.
        seed: Where chance begins; split i of a run begins at seed + i.
        results: The database: sqlite:///FILE or postgresql://USER@HOST/NAME.
        device: cpu, cuda, or auto: a GPU where there is one.
        lease: Seconds after which the work of a silent worker is taken over.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of words.
    """
    if jobs < 1:
        raise UserError(f"--jobs is {jobs}; at least 1 is needed.")
    told = parse_overrides(options)
    found = [recipe.with_overrides(told) for recipe in find_recipes(recipes)]
    order = SweepRequest(
        recipes=[recipe.on_datasets(on) for recipe in found] if on else found,
        config_filter=chosen_by(only),
        variant=variant,
        quoted=quoted,
        seed=seed,
        data=data,
    )
    crew = WorkerOptions(jobs=jobs, device=choose_device(device), lease_seconds=lease)
    if search is not None:
        run_search(order, SearchOptions(search, trials), results, crew, json=json)
        return
    agenda = plan_sweep(order)
    for why, count in Counter(agenda.missing.values()).items():
        print_notes([f"{count} cells cannot be run: {first_sentence(why)}"])
    if not agenda.keys and not agenda.missing:
        raise UserError("Nothing fits --only; quoted cells need --quoted besides.")
    if dry_run:
        print_plan(agenda, results, crew.device, retry=retry, json=json)
        return
    with progress_bar() as bar:
        sweep(agenda, results, crew=crew, retry=retry, progress=bar, remark=one_note)
    tell(agenda, results, json=json)


def one_note(what: str) -> None:
    """Tell one thing that somebody should know."""
    print_notes([what])


def first_sentence(text: str) -> str:
    """What is wrong, without what to do about it."""
    return text.partition(". ")[0].removesuffix(".") + "."


def tell(agenda: SweepPlan, url: str, *, json: bool) -> None:
    """Say how far the agenda is, and what failed."""
    with ResultsDatabase.read(url) as results:
        done, failed = results.done(agenda.keys), results.failed(agenda.keys)
    told = {
        "runs": len(agenda.keys),
        "done": len(done),
        "failed": len(failed),
        "missing": agenda.missing,
        "results": url,
    }
    reasons = Counter(failed.values())
    if json:
        print_json({**told, "errors": dict(reasons)})
        return
    for error, count in reasons.items():
        print_notes([f"{count} runs failed: {error.splitlines()[-1]}"])
    OUT.print(f"{told['done']} of {told['runs']} runs done, {told['failed']} failed.")


def print_plan(
    agenda: SweepPlan, url: str, device: str, *, retry: bool, json: bool
) -> None:
    """Show what would be run."""
    with ResultsDatabase.read(url) as results:
        rows = estimate(agenda, results, device, retry=retry)
        failed = results.failed(agenda.keys)
    left = [row for row in rows if row["left"]]
    total = {
        "runs": sum(row["runs"] for row in rows),
        "left": sum(row["left"] for row in rows),
        "failed": len(failed),
        "seconds": total_seconds(left),
    }
    if json:
        print_json({**total, "missing": agenda.missing, "bundles": rows})
        return
    if failed and not retry:
        print_notes([failed_before(len(failed))])
    if left:
        headings = ("bundle", "shape", "settings", "left", "memory_mb", "seconds")
        print_columns([column(heading, left) for heading in headings])
    time = "unknown" if total["seconds"] is None else f"about {total['seconds']:,.0f} s"
    OUT.print(
        f"{total['left']} of {total['runs']} runs in {len(left)} stacks are left; "
        f"time: {time}."
    )


def total_seconds(rows: Sequence[dict[str, Any]]) -> float | None:
    """The time of all rows, where it is known of each."""
    known = [row["seconds"] for row in rows]
    return None if None in known else float(sum(known))


def column(heading: str, rows: Sequence[dict[str, Any]]) -> Column:
    """A column of the plan."""
    values = [row[heading] for row in rows]
    words = any(isinstance(value, str) for value in values)
    cells = [
        value if words else "?" if value is None else f"{value:,.0f}"
        for value in values
    ]
    return Column(heading.replace("_", " "), cells, align_right=not words, wrap=words)


def run_search(
    order: SweepRequest,
    hunt: SearchOptions,
    url: str,
    crew: WorkerOptions,
    *,
    json: bool,
) -> None:
    """Let a searcher propose settings, and say what it found."""
    with progress_bar() as bar:
        found = search_cells(order, hunt, url, crew=crew, progress=bar)
    if json:
        print_json(found)
        return
    for one in found:
        OUT.print(
            f"{one['dataset']} {one['method']}: valid {one['valid']:.2f}, "
            f"test {one['test']:.2f} after {one['trials']} trials: {one['options']}",
            markup=False,
        )
