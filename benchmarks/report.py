"""How large a report of many runs is, and how soon a browser shows it.

python benchmarks/report.py [RUNS]
"""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sqlalchemy as sql

from unalike.experiments.config import Config, build_method
from unalike.experiments.database import ResultsDatabase, compress_curves
from unalike.experiments.database_connection import CURVES, RUNS
from unalike.experiments.plan import run_key
from unalike.reports.site.site_data import SiteData
from unalike.reports.site.writer import write_site

DATASETS = ("texas", "cornell", "wisconsin", "actor", "squirrel", "chameleon")
METHODS = ("linkx", "mlp", "gcn", "gat", "mixhop", "h2gcn", "gcnii", "gpr-gnn")
SPLITS = 10
CURVE = 200


def configs(count: int) -> Iterator[Config]:
    """Configurations of each method with different learning rates."""
    rates = [round(0.001 * 1.1**place, 6) for place in range(count)]
    for method, rate in product(METHODS, rates):
        yield Config(build_method(method, {"lr": rate}))


def rows(count: int) -> Iterator[dict[str, Any]]:
    """Runs with scores by chance."""
    chance = random.Random(0)
    each = -(-count // (len(DATASETS) * len(METHODS) * SPLITS))
    places = product(DATASETS, configs(each), range(SPLITS))
    for number, (dataset, config, split) in zip(range(count), places, strict=False):
        valid = 100 * chance.random()
        curve = [[chance.random() for _ in range(CURVE)] for _ in range(2)]
        yield {
            **config.to_dict,
            "key": run_key(config.to_dict, dataset, "made-up", split, 0),
            "setting": config.hash,
            "shape": config.stack_key,
            "dataset": dataset,
            "dataset_hash": "made-up",
            "batching": config.batching,
            "metric": "accuracy",
            "split": split,
            "seed": 0,
            "train": 100.0,
            "valid": valid,
            "test": valid + chance.gauss(0, 2),
            "best_epoch": CURVE // 2,
            "seconds": chance.lognormvariate(0, 2),
            "peak_memory_mb": chance.lognormvariate(6, 1),
            "device": "made up",
            "versions": {},
            "commit": "made-up",
            "finished": float(number),
            "curve": compress_curves(curve) if split < 2 else None,
        }


def fill(url: str, count: int) -> None:
    """Store made-up runs, quicker than one by one."""
    made = list(rows(count))
    with ResultsDatabase.open(url) as results, results.engine.begin() as connection:
        for table in (RUNS, CURVES):
            names = {column.name for column in table.c}
            chosen = [row for row in made if table is RUNS or row["curve"]]
            values = [{name: row[name] for name in names} for row in chosen]
            connection.execute(sql.insert(table), values)


def loaded(index: Path) -> dict[str, float]:
    """Milliseconds until the table is drawn, the median of five; and of a cell."""
    from playwright.sync_api import sync_playwright

    drawn, opened = [], []
    with sync_playwright() as driver:
        path = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for _ in range(5):
            page = browser.new_page()
            page.goto(index.as_uri())
            page.wait_for_selector(".leaderboard td button")
            drawn.append(page.evaluate("performance.now()"))
            begin = time.perf_counter()
            page.locator(".winners button").first.click()
            page.wait_for_selector("dialog table")
            opened.append(1000 * (time.perf_counter() - begin))
            page.close()
        browser.close()
    return {"page": sorted(drawn)[2], "cell": sorted(opened)[2]}


def main(count: int = 50_000) -> None:
    """Make a database, write its report, open it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        url = f"sqlite:///{folder / 'results.db'}"
        fill(url, count)
        begin = time.perf_counter()
        with ResultsDatabase.open(url) as results:
            told = write_site(folder / "site", SiteData(results), None)
        spent = time.perf_counter() - begin
        files = [one for one in (folder / "site").rglob("*") if one.is_file()]
        whole = sum(one.stat().st_size for one in files)
        first = (folder / "site" / "data" / "site.js").stat().st_size
        took = loaded(folder / "site" / "index.html")
    print(f"{told['runs']:,} runs, written in {spent:.1f} s")
    print(f"{whole / 1e6:.1f} MB in {len(files)} files, {first / 1e3:.0f} kB at first")
    print(f"the table is drawn after {took['page']:.0f} ms")
    print(f"a cell shows its runs after {took['cell']:.0f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
