"""A database of results and its site, made up, with names that mean harm."""

from result_rows import row_of

from unalike.data.calibration import Reliability
from unalike.datasets.base import Published
from unalike.experiments.config import Config, build_method
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.evaluation import PredictionSummary
from unalike.experiments.plan import DatasetRef
from unalike.experiments.recipe import PaperTable, parse
from unalike.reports.site import site_data
from unalike.reports.site.datasets import measure_document

HARM = "<script>document.title='harm'</script>"
TABLE = PaperTable("ours", "Our table", "best", [])
ROW = """
row = "{row}"
method = "{method}"
splits = 3
[grid]
hidden = [4, 8]
[cells]
texas = {{ mean = {mean}, std = 2.0 }}
cornell = {{ mean = 60.0, std = 1.0 }}
"""
ANSWERS = PredictionSummary(
    confusion=[[20, 5, 0], [3, 9, 0], [0, 0, 0]],
    reliability=Reliability([0, 12, 25], [0.0, 0.6, 0.9], [0.0, 0.5, 0.92]),
    classes=["student", HARM, "a class of a long name"],
)
"""Of the chosen setting of LINKX on texas; other runs have none."""
ROWS = {"LINKX": ("linkx", 70.0), "MLP": ("mlp", 73.0), "GCN": ("gcn", 90.0)}
RECIPES = [
    parse(ROW.format(row=row, method=method, mean=mean), f"ours/{method}")
    for row, (method, mean) in ROWS.items()
]


def only_our_table(monkeypatch):
    """Let reports have one small table of the paper."""
    monkeypatch.setattr(PaperTable, "recipes", lambda _: RECIPES)
    tables = {"ours": TABLE}
    monkeypatch.setattr(site_data, "paper_tables", lambda: tables)


def runs(dataset, method, valid, test, answers=None, **options):
    """Three runs of a config, whose test scores are one apart."""
    ref = DatasetRef(dataset, dataset, "abc", 3)
    config = Config(build_method(method, options))
    return [
        row_of(
            split,
            valid=valid,
            test=test + split,
            dataset=ref,
            config=config,
            answers=answers,
        )
        for split in range(3)
    ]


def store_some(url):
    """LINKX wins on texas and MLP on cornell; GCN fails; one dataset means harm."""
    with ResultsDatabase.open(url) as results:
        results.store(
            [
                *runs("texas", "linkx", 80.0, 74.0, answers=ANSWERS, hidden=4),
                *runs("texas", "linkx", 79.0, 90.0, hidden=8),
                *runs("texas", "mlp", 70.0, 64.0, hidden=4),
                *runs("cornell", "linkx", 50.0, 40.0, hidden=4),
                *runs("cornell", "mlp", 50.0, 70.0, hidden=4),
                *runs(HARM, "sgc", 50.0, 40.0, hops=2),
            ]
        )
        failed = runs("texas", "gcn", 0.0, 0.0, hidden=4)
        results.store_failures(failed, f"MemoryError: no room for {HARM}")


def measures_of(graph):
    """The document of the measures of one graph, which has a harmful name."""
    return {"datasets": [measure_document(HARM, graph, Published())], "skipped": {}}
