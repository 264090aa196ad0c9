"""`unalike sweep`: run the grids of recipes, or search them, and store the results."""

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
    parse_filter,
    parse_overrides,
    plan_sweep,
)
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
    """Run the unfinished runs of recipes; a sweep can be stopped at any time.

    Example: unalike sweep prior-datasets/linkx --only dataset=texas --dry-run

    Args:
        recipes: Tables, rows of tables (`unalike list recipes`), or files of recipes.
        only: Which cells and settings, as in method=linkx dataset=texas hidden=64.
        on: Run the grids on these datasets instead of those of the recipes.
        options: Options for all settings, as in epochs=100 precision=bf16.
        variant: The grid of this name where a recipe has one, as in appendix.
        quoted: Also run cells whose numbers the paper quotes from other papers.
        search: Run settings that this searcher proposes, not the grid: optuna.
        trials: Settings of a cell that a search runs, stored ones included.
        jobs: Worker processes, which share the memory of a GPU; further sweeps may
            work on the same results.
        retry: Run failed runs again.
        dry_run: Show the runs with estimates of memory and time.
        seed: Seed of random numbers; split i uses seed + i.
        results: The database: sqlite:///FILE or postgresql://USER@HOST/NAME.
        device: cpu, cuda, or auto: a GPU if there is one.
        lease: Seconds after which the runs of an unresponsive worker are free again.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of text.
    """
    if jobs < 1:
        raise UserError(f"--jobs is {jobs}; at least 1 is needed.")
    overrides = parse_overrides(options)
    rows = [recipe.with_overrides(overrides) for recipe in find_recipes(recipes)]
    request = SweepRequest(
        recipes=[recipe.on_datasets(on) for recipe in rows] if on else rows,
        config_filter=parse_filter(only),
        variant=variant,
        quoted=quoted,
        seed=seed,
        data=data,
    )
    workers = WorkerOptions(
        jobs=jobs, device=choose_device(device), lease_seconds=lease
    )
    if search is not None:
        run_search(request, SearchOptions(search, trials), results, workers, json=json)
        return
    plan = plan_sweep(request)
    for reason, count in Counter(plan.missing.values()).items():
        print_note(f"{count} cells cannot be run: {first_sentence(reason)}")
    if not plan.keys and not plan.missing:
        raise UserError("Nothing fits --only; quoted cells need --quoted besides.")
    if dry_run:
        print_plan(plan, results, workers.device, retry=retry, json=json)
        return
    with progress_bar() as bar:
        sweep(
            plan,
            results,
            workers=workers,
            retry=retry,
            progress=bar,
            on_message=print_note,
        )
    print_outcome(plan, results, json=json)


def print_note(note: str) -> None:
    """Print one note to standard error."""
    print_notes([note])


def first_sentence(text: str) -> str:
    """The error without the advice that follows it."""
    return text.partition(". ")[0].removesuffix(".") + "."


def print_outcome(plan: SweepPlan, url: str, *, json: bool) -> None:
    """Print how many runs of a plan are done, and the errors of failed ones."""
    with ResultsDatabase.read(url) as results:
        done, failed = results.done(plan.keys), results.failed(plan.keys)
    document = {
        "runs": len(plan.keys),
        "done": len(done),
        "failed": len(failed),
        "missing": plan.missing,
        "results": url,
    }
    errors = Counter(failed.values())
    if json:
        print_json({**document, "errors": dict(errors)})
        return
    for error, count in errors.items():
        print_note(f"{count} runs failed: {error.splitlines()[-1]}")
    OUT.print(f"{len(done)} of {len(plan.keys)} runs done, {len(failed)} failed.")


def print_plan(
    plan: SweepPlan, url: str, device: str, *, retry: bool, json: bool
) -> None:
    """Print the runs of a plan with estimates of memory and time."""
    with ResultsDatabase.read(url) as results:
        rows = estimate(plan, results, device, retry=retry)
        failed = results.failed(plan.keys)
    left = [row for row in rows if row["left"]]
    total = {
        "runs": sum(row["runs"] for row in rows),
        "left": sum(row["left"] for row in rows),
        "failed": len(failed),
        "seconds": total_seconds(left),
    }
    if json:
        print_json({**total, "missing": plan.missing, "bundles": rows})
        return
    if failed and not retry:
        print_note(failed_before(len(failed)))
    if left:
        headings = ("bundle", "shape", "settings", "left", "memory_mb", "seconds")
        print_columns([column(heading, left) for heading in headings])
    time = "unknown" if total["seconds"] is None else f"about {total['seconds']:,.0f} s"
    OUT.print(
        f"{total['left']} of {total['runs']} runs in {len(left)} stacks are left; "
        f"time: {time}."
    )


def total_seconds(rows: Sequence[dict[str, Any]]) -> float | None:
    """The time of all rows; None if that of any row is unknown."""
    seconds = [row["seconds"] for row in rows]
    return None if None in seconds else float(sum(seconds))


def column(heading: str, rows: Sequence[dict[str, Any]]) -> Column:
    """A column of the plan."""
    values = [row[heading] for row in rows]
    is_text = any(isinstance(value, str) for value in values)
    cells = [
        value if is_text else "?" if value is None else f"{value:,.0f}"
        for value in values
    ]
    return Column(
        heading.replace("_", " "), cells, align_right=not is_text, wrap=is_text
    )


def run_search(
    request: SweepRequest,
    options: SearchOptions,
    url: str,
    workers: WorkerOptions,
    *,
    json: bool,
) -> None:
    """Search the cells of a request and print the best configuration of each."""
    with progress_bar() as bar:
        cells = search_cells(request, options, url, workers=workers, progress=bar)
    if json:
        print_json(cells)
        return
    for best in cells:
        OUT.print(
            f"{best['dataset']} {best['method']}: valid {best['valid']:.2f}, "
            f"test {best['test']:.2f} after {best['trials']} trials: {best['options']}",
            markup=False,
        )
