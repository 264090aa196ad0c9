"""A report in a real browser: Debian's Chromium, driven by Playwright."""

import os
import shutil
import threading
from pathlib import Path

import pytest
from graphs import suiting
from report_fixtures import HARM, measures_of, only_our_table, store_some
from sweep_fixtures import small_plan, stored, swept

from unalike.experiments.database import ResultsDatabase
from unalike.experiments.selection import SelectionOptions
from unalike.reports.site.server import LiveSite, ReportServer
from unalike.reports.site.site_data import SiteData
from unalike.reports.site.writer import write_site

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright here")
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("no chromium here: apt install chromium", allow_module_level=True)

pytestmark = pytest.mark.browser

PATIENCE = 60_000
"""Milliseconds after which a page is taken to be broken."""
PHONE = {"width": 390, "height": 844}
VIEWS = ("leaderboard", "cost", "hyperparameters", "datasets", "missing")
SHOWS_HARM = {
    "leaderboard": ("Table", "all-runs"),
    "hyperparameters": ("Method", "sgc"),
}
DRAWN = {
    "cost": "main .cost_memory .mark-symbol path",
    "hyperparameters": "main .sensitivity .mark-line path",
    "datasets": "main .compatibility .mark-rect path",
}


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield found
        found.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A report in a folder."""
    folder = tmp_path_factory.mktemp("report")
    url = f"sqlite:///{folder / 'results.db'}"
    store_some(url)
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        ResultsDatabase.open(url) as results,
    ):
        only_our_table(monkeypatch)
        site_data = SiteData(results, SelectionOptions(data=folder))
        write_site(folder / "site", site_data, measures_of(suiting(nodes=60)))
    return folder / "site"


@pytest.fixture
def opened(browser, site):
    """Opens the page; afterwards nothing may have been said or asked for."""
    contexts, said, asked = [], [], []

    def go(view="", **how):
        context = browser.new_context(**how)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{(site / 'index.html').as_uri()}#{view}")
        page.wait_for_selector("main > *")
        contexts.append(context)
        return page

    yield go
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def keep(page, name):
    """Keep a picture for whoever wants to look at it."""
    here = Path(__file__).parents[2] / "site" / "screenshots"
    folder = Path(os.environ.get("SCREENSHOTS", here))
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png")


def names(page):
    """The methods of the leaderboard, from top to bottom."""
    rows = page.locator(".leaderboard tbody th").all()
    return [row.evaluate("node => node.firstChild.textContent") for row in rows]


def table_of(dialog, name):
    """The table in the part of a dialog that scrolls under a name."""
    return dialog.get_by_role("region", name=name, exact=True).locator("table")


def choose(page, what, value):
    page.get_by_role("combobox", name=what, exact=True).select_option(value)


def wait_for_text(page, text):
    page.wait_for_function("text => document.body.textContent.includes(text)", arg=text)


def test_the_winner_of_each_dataset_is_seen_at_once(opened):
    page = opened()
    cards = page.locator(".winners li").all_inner_texts()
    assert [card.split("\n")[:2] for card in cards] == [
        ["texas", "GCN"],
        ["cornell", "MLP"],
    ]
    assert "90.00 published" in cards[0]
    assert "+15.00 over LINKX" in cards[0]
    assert "71.00" in cards[1]
    best = page.locator("td.best .ours, td.best .published").all_inner_texts()
    assert sorted(best) == ["71.00", "90.00"]
    keep(page, "leaderboard")


def test_headings_sort(opened):
    page = opened()
    assert names(page) == ["LINKX", "MLP", "GCN"]
    page.get_by_role("button", name="cornell accuracy").click()
    assert names(page) == ["MLP", "GCN", "LINKX"]
    heading = page.get_by_role("columnheader", name="cornell")
    assert heading.get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="cornell accuracy").click()
    assert names(page) == ["LINKX", "GCN", "MLP"]
    page.get_by_role("button", name="method").click()
    assert names(page) == ["GCN", "LINKX", "MLP"]


def test_rows_are_filtered_and_the_best_of_the_rest_wins(opened):
    page = opened()
    choose(page, "Family", "row-wise")
    assert names(page) == ["LINKX", "MLP"]
    assert "LINKX" in page.locator(".winners li").first.inner_text()
    choose(page, "Table", "all-runs")
    choose(page, "Batching", "full")
    assert names(page) == ["linkx", "mlp", "sgc"]


def test_a_cell_shows_std_and_number_of_runs(opened):
    page = opened()
    tip = page.get_by_role("tooltip")
    page.locator("#cell-0-0").hover()
    assert "ours 75.00 ± 1.00 over 3 runs" in tip.inner_text()
    assert "published 70.00 ± 2.00 (ours +2.5 σ)" in tip.inner_text()
    page.mouse.move(0, 0)
    assert tip.is_hidden()
    page.locator("#cell-2-0").focus()
    assert "failed: MemoryError" in tip.inner_text()


def test_a_cell_opens_its_runs_its_curves_and_its_command(opened):
    page = opened()
    page.locator("#cell-0-0").click()
    dialog = page.get_by_role("dialog", name="LINKX on texas")
    curves = dialog.locator("figure", has_text="a line for each of 3 splits")
    curves.nth(1).locator("svg").wait_for()
    assert curves.locator(".mark-line path").count() == 6
    command = dialog.locator("code").first.inner_text()
    assert command.startswith("unalike train texas linkx ")
    assert command.endswith("--splits 0,1,2 --seed 0")
    assert "hidden 4" in dialog.locator(".options").inner_text()
    runs = table_of(dialog, "Runs").locator("tbody tr").all_inner_texts()
    assert [row.split()[:4] for row in runs] == [
        [str(split), "90.00", "80.00", f"{74 + split}.00"] for split in range(3)
    ]
    settings = table_of(dialog, "Configurations").locator("tbody tr").all_inner_texts()
    assert ["selected" in row for row in settings] == [True, False]
    keep(page, "cell")


@pytest.mark.parametrize(
    ("name", "how"),
    {
        "light": {},
        "dark": {"color_scheme": "dark"},
        "phone": {"viewport": PHONE},
    }.items(),
)
def test_a_cell_shows_which_classes_are_confused_and_how_sure_it_is(opened, name, how):
    page = opened(**how)
    page.locator("#cell-0-0").click()
    dialog = page.get_by_role("dialog")
    heading = dialog.get_by_role("heading", name="Predictions of test nodes")
    heading.evaluate("node => node.scrollIntoView()")
    matrix = dialog.get_by_role("img", name="Confusion matrix")
    matrix.locator("text", has_text="80 %").wait_for()
    plot = dialog.get_by_role("img", name="calibration error is 4.6 %")
    plot.locator(".mark-symbol path").first.wait_for()
    assert plot.locator(".mark-symbol path").count() == 2
    assert (
        "Expected calibration error 4.6 %. Predictions are well calibrated on "
        "average: mean confidence 80 %, accuracy 78 %."
    ) in dialog.inner_text()
    keep(page, f"answers-{name}")
    dialog.get_by_text("In numbers").first.click()
    rows = table_of(dialog, "Confusion matrix in numbers").locator("tbody tr")
    assert " ".join(rows.first.inner_text().split()) == "student 60 80 % 15 20 % 0 0 %"
    assert rows.nth(1).locator("th").inner_text() == HARM
    dialog.get_by_text("In numbers").last.click()
    bins = table_of(dialog, "Reliability in numbers").locator("tbody tr")
    assert bins.first.inner_text().split("\t") == [
        "33 % to 67 %",
        "36",
        "60.0 %",
        "50.0 %",
    ]
    wide = "node => node.scrollWidth - node.clientWidth"
    assert dialog.evaluate(wide) == 0


def test_a_cell_says_where_answers_were_not_kept(opened):
    page = opened()
    page.locator("#cell-1-0").click()
    wait_for_text(page, "No predictions are stored for these runs")


def test_the_value_of_every_split_is_shown_beside_a_curve(opened):
    page = opened()
    page.locator("#cell-0-0").click()
    chart = page.locator("dialog .curves").first
    chart.locator("svg").wait_for()
    chart.hover()
    tooltip = page.get_by_role("tooltip", include_hidden=True)
    lines = tooltip.locator("p").all_inner_texts()
    assert [line.split()[0] for line in lines] == ["epoch", "split", "split", "split"]
    assert tooltip.is_visible()


def test_charts_follow_the_theme(opened):
    page = opened("hyperparameters")
    line = page.locator(".sensitivity .mark-line path").first
    line.wait_for(state="attached")
    stroke = "node => getComputedStyle(node).stroke"
    assert line.evaluate(stroke) == "rgb(15, 118, 110)"
    page.get_by_role("button", name="Switch to dark colours").click()
    assert line.evaluate(stroke) == "rgb(79, 195, 179)"


def test_the_chart_library_is_loaded_with_the_first_chart(opened):
    page = opened()
    assert page.evaluate("'vegaEmbed' in window") is False
    page.locator("#cell-0-0").click()
    page.wait_for_selector("dialog figure svg")
    assert page.evaluate("'vegaEmbed' in window") is True


def test_an_empty_cell_says_why_and_how_to_fill_it(opened):
    page = opened()
    page.locator("#cell-2-1").click()
    dialog = page.get_by_role("dialog")
    assert "the files of cornell are not here" in dialog.inner_text()
    assert dialog.locator("code").inner_text() == (
        "unalike sweep ours/gcn --only dataset=cornell"
    )


def test_everything_works_by_keyboard(opened):
    page = opened()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "cell-0-0":
            break
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    assert dialog.is_visible()
    page.keyboard.press("Escape")
    assert dialog.is_hidden()
    assert page.evaluate("document.activeElement.id") == "cell-0-0"
    page.locator("#sort-1").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "sort-1"
    assert names(page) == ["MLP", "GCN", "LINKX"]


@pytest.mark.parametrize("view", DRAWN)
def test_every_view_draws_its_charts(opened, view):
    page = opened(view)
    page.wait_for_selector(DRAWN[view], state="attached")
    link = page.locator("nav a[aria-current=page]")
    assert link.get_attribute("href") == f"#{view}"
    keep(page, view)


def test_missing_cells_show_their_reasons(opened):
    page = opened("missing")
    assert "3 runs failed" in page.locator("main").inner_text()
    page.get_by_text("the files of cornell are not here").click()
    assert "GCN" in page.locator("details[open] table").inner_text()
    keep(page, "missing")


@pytest.mark.parametrize("view", VIEWS)
def test_names_that_mean_harm_are_only_text(opened, view):
    page = opened(view)
    if view in SHOWS_HARM:
        choose(page, *SHOWS_HARM[view])
    wait_for_text(page, HARM)
    assert page.title() == "unalike: results"
    assert page.locator("main script").count() == 0


def test_dark_and_light_follow_the_system_and_the_button(opened):
    page = opened(color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(20, 24, 27)"
    keep(page, "dark")
    page.get_by_role("button", name="Switch to light colours").click()
    assert page.evaluate(ground) == "rgb(253, 253, 252)"
    page.reload()
    page.wait_for_selector(".leaderboard")
    assert page.evaluate(ground) == "rgb(253, 253, 252)"


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_is_wide_enough(opened, view):
    page = opened(view, viewport=PHONE)
    if view in DRAWN:
        page.wait_for_selector(DRAWN[view], state="attached")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    keep(page, f"phone-{view}")


def test_a_cell_fits_a_phone(opened):
    page = opened(viewport=PHONE)
    page.locator("#cell-0-0").click()
    page.wait_for_selector("dialog figure svg")
    wide = "node => node.scrollWidth - node.clientWidth"
    assert page.locator("dialog").evaluate(wide) == 0
    keep(page, "phone-cell")


def test_a_running_sweep_is_followed(browser, tmp_path, monkeypatch):
    only_our_table(monkeypatch)
    url = f"sqlite:///{tmp_path / 'results.db'}"
    plan = small_plan(stored(tmp_path), hidden="[4]")
    with (
        ResultsDatabase.open(url) as results,
        ReportServer(LiveSite(SiteData(results)), "::1", 0) as site,
    ):
        threading.Thread(target=site.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(site.address)
        wait_for_text(page, "0 runs")
        work = threading.Thread(target=swept, args=(plan, url))
        work.start()
        wait_for_text(page, "12 runs")
        choose(page, "Table", "all-runs")
        page.wait_for_selector("#cell-0-0")
        assert "live" in page.get_by_role("status").inner_text()
        page.locator("#cell-0-0").click()
        page.wait_for_selector("dialog figure svg")
        work.join()
        keep(page, "live")
        site.shutdown()
        page.close()
