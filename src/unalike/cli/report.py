"""`unalike report`: all results on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unalike.cli.console import (
    DEFAULT_DATABASE,
    OUT,
    print_notes,
    print_output,
    progress_bar,
)
from unalike.errors import UserError
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.database_connection import database_exists, hide_password
from unalike.experiments.selection import SelectionOptions
from unalike.http_server import is_loopback
from unalike.reports.site.datasets import dataset_documents
from unalike.reports.site.server import LiveSite, ReportServer
from unalike.reports.site.site_data import SiteData
from unalike.reports.site.writer import chart_assets, check_output_dir, write_site


def command(
    *,
    results: str = DEFAULT_DATABASE,
    out: Path = Path("site"),
    settings: str = "grid",
    variant: str = "",
    seed: str = "most",
    no_measures: bool = False,
    serve: bool = False,
    host: str = "127.0.0.1",
    port: int = 8000,
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Write a site that shows all results: open its index.html in a browser.

    It holds the leaderboards with the runs and commands behind every number, time and
    memory, what each option does, the homophily of the available datasets, and what is
    missing. It needs no network. With --serve nothing is written: a page on this
    machine follows the database while a sweep fills it.

    Example: unalike report --results sqlite:///results.db --out site

    Args:
        results: The database: sqlite:///FILE or postgresql://USER@HOST/NAME.
        out: Folder to write; an older report in it is replaced.
        settings: Choose among the settings of the grids, or any that were tried.
        variant: Choose among the grids of this name where there are any.
        seed: Runs of this seed; most: the seed with the most complete settings; any:
            the best of all seeds.
        no_measures: Leave out the datasets; measuring takes a while the first time.
        serve: Show the site on an address of this machine, and keep it up to date.
        host: Address to serve at; only this machine can reach the default.
        port: Port to serve at; 0 takes any free one.
        data: Folder of the raw files of datasets.
        json: Print one JSON document instead of words.
    """
    if not database_exists(results):
        raise UserError(
            f"There is no results database at {hide_password(results)}; "
            "`unalike sweep` makes one."
        )
    query = SelectionOptions(settings=settings, variant=variant, seed=seed, data=data)
    if not serve:
        check_output_dir(out)
    with ResultsDatabase.read(results) as database:
        site_data = SiteData(database, query)
        with progress_bar() as bar:
            chart_assets(bar)
            paths = database.graph_paths()
            datasets = None if no_measures else dataset_documents(data, paths, bar)
            if not serve:
                counts = write_site(out, site_data, datasets, bar)
        if serve:
            with ReportServer(LiveSite(site_data, datasets), host, port) as server:
                serve_site(server, host, json=json)
        else:
            print_summary(out / "index.html", counts, json=json)


def serve_site(server: ReportServer, host: str, *, json: bool) -> None:
    """Serve the page until Ctrl-C is pressed."""
    with progress_bar() as bar:
        server.live.refresh(bar)
    if not is_loopback(host):
        print_notes(f"whoever can reach {host} can see these results")
    text = f"{server.address} follows the results; Ctrl-C ends it."
    print_output({"address": server.address}, text, json=json)
    OUT.file.flush()
    server.serve_until_interrupted()


def print_summary(file: Path, counts: dict[str, Any], *, json: bool) -> None:
    """Print what was written."""
    summary = (
        f"{counts['runs']:,} runs; {counts['cells']} cells filled, "
        f"{counts['missing']} empty; {counts['failures']} runs failed; "
        f"{counts['datasets']} datasets measured"
    )
    text = f"wrote {file}: {summary}."
    print_output({"file": str(file), **counts}, text, json=json)
