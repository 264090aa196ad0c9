"""The documents of the page from a database; only what has changed is read again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from unalike.experiments.results import Results
from unalike.experiments.select import Tried
from unalike.experiments.standing import Query
from unalike.progress import SILENT, Progress
from unalike.site.answered import predictions_by_config
from unalike.site.cell import Document
from unalike.site.charts import FAMILIES
from unalike.site.curves import curves_by_config
from unalike.site.everything import (
    BestConfig,
    RunGroupKey,
    all_runs_table,
    best_by_group,
)
from unalike.site.mark import config_id, method_runs_id
from unalike.site.missing import failed_runs, missing_cells
from unalike.site.shelf import method_runs
from unalike.site.stamps import DatasetMethod, change_tokens
from unalike.site.standings import LeaderboardCache
from unalike.version import __version__


@dataclass(eq=False)
class SiteData:
    """Builds the documents of the page from a database."""

    results: Results
    query: Query = field(default_factory=Query)
    _versions: dict[DatasetMethod, str] = field(default_factory=dict, init=False)
    _best: dict[DatasetMethod, dict[RunGroupKey, BestConfig]] = field(
        default_factory=dict, init=False
    )
    _sizes: dict[DatasetMethod, dict[str, int]] = field(
        default_factory=dict, init=False
    )

    def __post_init__(self) -> None:
        self.leaderboards = LeaderboardCache(self.results, self.query)

    def site_document(self, progress: Progress = SILENT) -> Document:
        """The tables of the page, without the runs."""
        self._reload_changed(progress)
        tables = self.leaderboards.leaderboards(self._versions, progress)
        groups = {key: one for best in self._best.values() for key, one in best.items()}
        shown = [*tables, all_runs_table(groups)]
        return {
            "version": __version__,
            "families": FAMILIES,
            "runs": sum(size["runs"] for size in self._sizes.values()),
            "tables": shown,
            "opening_table": self.leaderboards.opening_table(shown),
            "method_runs": [
                {
                    "id": document_id,
                    "dataset": pair[0],
                    "method": pair[1],
                    **self._sizes[pair],
                }
                for document_id, pair in self.method_run_ids().items()
            ],
            "missing": missing_cells(tables),
            "failed_runs": failed_runs(self.results.failures()),
        }

    def method_run_ids(self) -> dict[str, DatasetMethod]:
        """The pairs that have runs, by the ids of their documents."""
        return {method_runs_id(*pair): pair for pair in sorted(self._best)}

    def method_runs_document(self, pair: DatasetMethod) -> Document:
        """The runs of a pair; curves and predictions of what was selected."""
        dataset, method = pair
        ids: dict[str, set[str]] = {}
        for one in self._selected(pair):
            ids.setdefault(one.setting, set()).add(config_id(one.runs[0]))
        details: Document = {"curves": {}, "predictions": {}}
        for setting, wanted in ids.items():
            stored = self.results.runs(
                curves=True,
                answers=True,
                dataset=dataset,
                method=method,
                setting=setting,
            )
            rows = [row for row in stored if config_id(row) in wanted]
            details["curves"] |= curves_by_config(rows)
            details["predictions"] |= predictions_by_config(rows)
        all_rows = list(self.results.runs(dataset=dataset, method=method))
        return {**method_runs(all_rows), **details}

    def _reload_changed(self, progress: Progress) -> None:
        """Read the pairs that are new or have changed."""
        now = change_tokens(self.results)
        changed = [pair for pair in now if now[pair] != self._versions.get(pair)]
        progress.stage("reading runs", len(changed), "methods on datasets")
        for dataset, method in changed:
            rows = list(self.results.runs(dataset=dataset, method=method))
            if rows:
                num_configs = len({row["setting"] for row in rows})
                size = {"runs": len(rows), "configs": num_configs}
                self._sizes[dataset, method] = size
                self._best[dataset, method] = best_by_group(rows)
            progress.advance(1)
        for removed in self._best.keys() - now:
            del self._best[removed], self._sizes[removed]
        self._versions = now

    def _selected(self, pair: DatasetMethod) -> Iterator[Tried]:
        """The configurations of a pair that are selected in any table."""
        yield from (one.selected for one in self._best[pair].values())
        for one in self.leaderboards.selected():
            if (one.runs[0]["dataset"], one.runs[0]["method"]) == pair:
                yield one
