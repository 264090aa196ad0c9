"""`unalike sweep`: run the grids of recipes, or search them, and store the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike.cli.console import (
    DEFAULT_DATABASE,
    OUT,
    print_columns,
    print_json,
    print_notes,
    print_table,
    progress_bar,
)
from unalike.device import choose_device
from unalike.display import Column, TextTable
from unalike.errors import UserError, lookup
from unalike.experiments.config import config_from_dict
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.database_connection import hide_password
from unalike.experiments.plan import (
    NOTHING_FITS,
    SweepPlan,
    SweepRequest,
    parse_filter,
    parse_overrides,
    plan_sweep,
)
from unalike.experiments.recipe import Recipe, find_recipes
from unalike.experiments.recipe_search import SEARCHERS, plan_search, search_cells
from unalike.experiments.selection import CellSelector, SelectionOptions
from unalike.experiments.sweep import WorkerOptions, estimate, failed_before, sweep
from unalike.formatting import format_score
from unalike.reports.result_tables import command_of


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
    threads: int = 1,
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
        threads: CPU threads of each process that trains on the CPU. Another number
            gives other rounding, and so slightly other scores, under the same key.
        retry: Run failed runs again.
        dry_run: Show the runs with estimates of memory and time.
        seed: Seed of random numbers; split i uses seed + i.
        results: The database: sqlite:///FILE or postgresql://USER@HOST/NAME.
        device: cpu, cuda, or auto: a GPU if there is one.
        lease: Seconds after which the runs of an unresponsive worker are free again.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of text.
    """
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
        jobs=jobs,
        device=choose_device(device),
        lease_seconds=lease,
        threads=threads,
    )
    if search is not None:
        lookup(dict.fromkeys(SEARCHERS), search, "searcher")
        if dry_run:
            cells = plan_search(request, trials, results, on_missing=print_missing)
        else:
            with progress_bar() as bar:
                cells = search_cells(
                    request,
                    trials,
                    results,
                    retry=retry,
                    workers=workers,
                    progress=bar,
                    on_missing=print_missing,
                )
        print_search(cells, json=json)
        return
    plan = plan_sweep(request)
    print_missing(plan.missing)
    if not plan.keys and not plan.missing:
        raise UserError(NOTHING_FITS)
    if dry_run:
        print_plan(plan, results, workers, retry=retry, json=json)
        return
    with progress_bar() as bar:
        sweep(
            plan,
            results,
            workers=workers,
            retry=retry,
            progress=bar,
            on_message=print_notes,
        )
    own = [path for path in recipes if path.endswith(".toml")]
    kept = request.recipes if len(own) == len(recipes) else []
    query = SelectionOptions(variant=variant, seed=str(seed), data=data)
    print_outcome(plan, results, winners(kept, results, query), json=json)


def print_missing(missing: Mapping[str, str]) -> None:
    """Print how many cells cannot be run for each reason."""
    for reason, count in Counter(missing.values()).items():
        # The error without the advice that follows it.
        first_sentence = reason.partition(". ")[0].removesuffix(".")
        cells = "1 cell" if count == 1 else f"{count} cells"
        print_notes(f"{cells} cannot be run: {first_sentence}.")


def winners(
    recipes: Sequence[Recipe], url: str, query: SelectionOptions
) -> list[dict[str, Any]]:
    """The best setting of each cell by validation, and its command."""
    with ResultsDatabase.read(url) as results:
        selector = CellSelector(results, query)
        selected = [
            (recipe.method, cell, selector.select(recipe, cell))
            for recipe in recipes
            for cell in recipe.cells.values()
        ]
        datasets = {cell.dataset for _, cell, _ in selected}
        graphs = Counter(selector.version(dataset).name for dataset in datasets)
    return [
        {
            "dataset": cell.dataset if graphs[name] > 1 else name,
            "method": method,
            "settings": selection.num_complete,
            "valid": chosen.valid,
            "test": chosen.test,
            "std": chosen.std,
            "options": config_from_dict(chosen.runs[0]).describe(),
            "command": command_of(chosen, cell.dataset),
        }
        for method, cell, selection in selected
        if (chosen := selection.chosen) and (name := chosen.runs[0]["dataset"])
    ]


def print_winners(rows: Sequence[dict[str, Any]]) -> None:
    """Print the best setting of each cell, and the commands that repeat them."""
    if not rows:
        return
    headings = ("dataset", "method", "of", "valid", "test", "best setting")
    cells = [
        [
            row["dataset"],
            row["method"],
            str(row["settings"]),
            f"{row['valid']:.2f}",
            format_score(row["test"], row["std"]),
            row["options"],
        ]
        for row in rows
    ]
    right = ("of", "valid", "test")
    print_table(TextTable.from_rows("", headings, cells, right=right))
    for row in rows:
        OUT.print(row["command"], soft_wrap=True)


def print_outcome(
    plan: SweepPlan, url: str, best: Sequence[dict[str, Any]], *, json: bool
) -> None:
    """Print how many runs of a plan are done, errors of failed ones, and what won."""
    with ResultsDatabase.read(url) as results:
        done, failed = results.done(plan.keys), results.failed(plan.keys)
    document = {
        "runs": len(plan.keys),
        "done": len(done),
        "failed": len(failed),
        "missing": plan.missing,
        "results": hide_password(url),
    }
    errors = Counter(failed.values())
    if json:
        print_json({**document, "errors": dict(errors), "best": best})
        return
    for error, count in errors.items():
        print_notes(f"{count} runs failed: {error.splitlines()[-1]}")
    OUT.print(f"{len(done)} of {len(plan.keys)} runs done, {len(failed)} failed.")
    print_winners(best)


def print_plan(
    plan: SweepPlan, url: str, workers: WorkerOptions, *, retry: bool, json: bool
) -> None:
    """Print the runs of a plan with estimates of memory and time."""
    with ResultsDatabase.read(url) as results:
        rows = estimate(plan, results, workers, retry=retry)
        failed = results.failed(plan.keys)
    left = [row for row in rows if row["left"]]
    seconds = [row["seconds"] for row in left]
    total = {
        "runs": sum(row["runs"] for row in rows),
        "left": sum(row["left"] for row in rows),
        "failed": len(failed),
        "seconds": None if None in seconds else float(sum(seconds)),
    }
    if json:
        print_json({**total, "missing": plan.missing, "bundles": rows})
        return
    if failed and not retry:
        print_notes(failed_before(len(failed)))
    if left:
        headings = ("bundle", "shape", "settings", "left", "memory_mb", "seconds")
        print_columns([column(heading, left) for heading in headings])
    time = "unknown" if total["seconds"] is None else f"about {total['seconds']:,.0f} s"
    OUT.print(
        f"{total['left']} of {total['runs']} runs in {len(left)} stacks are left; "
        f"time: {time}."
    )


def column(heading: str, rows: Sequence[dict[str, Any]]) -> Column:
    """A column of the plan."""
    values = [row[heading] for row in rows]
    is_text = any(isinstance(value, str) for value in values)
    numbers = ("?" if value is None else f"{value:,.0f}" for value in values)
    cells, title = values if is_text else list(numbers), heading.replace("_", " ")
    return Column(title, cells, align_right=not is_text, wrap=is_text)


def print_search(cells: Sequence[dict[str, Any]], *, json: bool) -> None:
    """Print the best configuration of cells, or how many trials are left."""
    if json:
        print_json(cells)
        return
    for cell in cells:
        name, trials = f"{cell['dataset']} {cell['method']}", f"{cell['trials']} trials"
        if "left" in cell:
            left = f"{cell['left']} left with {cell['runs']} runs"
            searched = ", ".join(cell["searched"])
            OUT.print(f"{name}: {trials} stored, {left}; searched: {searched}")
        else:
            scores = f"valid {cell['valid']:.2f}, test {cell['test']:.2f}"
            OUT.print(f"{name}: {scores} after {trials}: {cell['options']}")
