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

from unalike.experiments.agenda import run_key
from unalike.experiments.record import pack
from unalike.experiments.results import Results
from unalike.experiments.schema import CURVES, RUNS
from unalike.experiments.setting import Setting, build
from unalike.site.page import write_site
from unalike.site.survey import SiteData

DATASETS = ("texas", "cornell", "wisconsin", "actor", "squirrel", "chameleon")
METHODS = ("linkx", "mlp", "gcn", "gat", "mixhop", "h2gcn", "gcnii", "gpr-gnn")
SPLITS = 10
CURVE = 200


def settings(count: int) -> Iterator[Setting]:
    """So many settings for each method."""
    rates = [round(0.001 * 1.1**place, 6) for place in range(count)]
    for method, rate in product(METHODS, rates):
        yield Setting(build(method, {"lr": rate}))


def rows(count: int) -> Iterator[dict[str, Any]]:
    """Runs with scores by chance."""
    chance = random.Random(0)
    each = -(-count // (len(DATASETS) * len(METHODS) * SPLITS))
    places = product(DATASETS, settings(each), range(SPLITS))
    for number, (dataset, setting, split) in zip(range(count), places, strict=False):
        valid = 100 * chance.random()
        curve = [[chance.random() for _ in range(CURVE)] for _ in range(2)]
        yield {
            **setting.facts,
            "key": run_key(setting.facts, dataset, "made-up", split, 0),
            "setting": setting.key,
            "shape": setting.shape,
            "dataset": dataset,
            "dataset_hash": "made-up",
            "batching": setting.batching,
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
            "curve": pack(curve) if split < 2 else None,
        }


def fill(url: str, count: int) -> None:
    """Store made-up runs, quicker than one by one."""
    made = list(rows(count))
    with Results.open(url) as results, results.engine.begin() as connection:
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
        with Results.open(url) as results:
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
