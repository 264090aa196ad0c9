"""Survey: the documents of the page, from what a database holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from unalike.experiments.results import Results
from unalike.experiments.select import Tried
from unalike.experiments.standing import Query
from unalike.progress import SILENT, Progress
from unalike.site.answered import answered
from unalike.site.cell import Document
from unalike.site.curves import curves
from unalike.site.everything import Pick, Place, everything, picks
from unalike.site.mark import setting_mark, shelf_mark
from unalike.site.missing import failures, missing
from unalike.site.shelf import shelf
from unalike.site.stamps import Pair, stamps
from unalike.site.standings import Standings
from unalike.version import __version__


@dataclass(eq=False)
class Survey:
    """Reads a database, and reads again only what has changed."""

    results: Results
    query: Query = field(default_factory=Query)
    _stamps: dict[Pair, str] = field(default_factory=dict, init=False)
    _picks: dict[Pair, dict[Place, Pick]] = field(default_factory=dict, init=False)
    _sizes: dict[Pair, dict[str, int]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.standings = Standings(self.results, self.query)

    def look(self, progress: Progress = SILENT) -> Document:
        """The document of the whole page; the runs are in those of the shelves."""
        self._read(progress)
        tables = self.standings.leaderboards(self._stamps, progress)
        found = {
            place: one for told in self._picks.values() for place, one in told.items()
        }
        return {
            "version": __version__,
            "runs": sum(size["runs"] for size in self._sizes.values()),
            "tables": [*tables, everything(found)],
            "shelves": [
                {
                    "mark": mark,
                    "dataset": pair[0],
                    "method": pair[1],
                    **self._sizes[pair],
                }
                for mark, pair in self.shelves().items()
            ],
            "missing": missing(tables),
            "failures": failures(self.results.failures()),
        }

    def shelves(self) -> dict[str, Pair]:
        """The pairs of which there are runs, by their marks."""
        return {shelf_mark(*pair): pair for pair in sorted(self._picks)}

    def shelf(self, pair: Pair) -> Document:
        """The runs of a pair; of settings that were chosen, also curves and answers."""
        dataset, method = pair
        marks: dict[str, set[str]] = {}
        for one in self._chosen(pair):
            marks.setdefault(one.setting, set()).add(setting_mark(one.runs[0]))
        drawn: Document = {"curves": {}, "answers": {}}
        for setting, wanted in marks.items():
            told = self.results.runs(
                curves=True,
                answers=True,
                dataset=dataset,
                method=method,
                setting=setting,
            )
            rows = [row for row in told if setting_mark(row) in wanted]
            drawn["curves"] |= curves(rows)
            drawn["answers"] |= answered(rows)
        all_rows = list(self.results.runs(dataset=dataset, method=method))
        return {**shelf(all_rows), **drawn}

    def _read(self, progress: Progress) -> None:
        """Look through the pairs that are new or have changed."""
        now = stamps(self.results)
        changed = [pair for pair in now if now[pair] != self._stamps.get(pair)]
        progress.stage("reading runs", len(changed), "shelves")
        for dataset, method in changed:
            rows = list(self.results.runs(dataset=dataset, method=method))
            if rows:
                num_settings = len({row["setting"] for row in rows})
                size = {"runs": len(rows), "settings": num_settings}
                self._sizes[dataset, method] = size
                self._picks[dataset, method] = picks(rows)
            progress.advance(1)
        for gone in self._picks.keys() - now:
            del self._picks[gone], self._sizes[gone]
        self._stamps = now

    def _chosen(self, pair: Pair) -> Iterator[Tried]:
        """The settings of a pair that stand in any table."""
        yield from (one.chosen for one in self._picks[pair].values())
        for one in self.standings.chosen():
            if (one.runs[0]["dataset"], one.runs[0]["method"]) == pair:
                yield one
