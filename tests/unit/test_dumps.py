"""Dump files of a known wiki give exactly its graph."""

import dump_files
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unalike import UserError
from unalike.wiki.collection import TABLES
from unalike.wiki.dumps import collect

WIKI = {
    "Hilbert space": ["Banach space", "Vector", "Hilbert space", "No such page"],
    "Banach space": ["Hilbert space", "Complete", "Talk:Vector", "Stefan's \\ lemma"],
    "Vector": "Vector space",
    "Vector space": ["Vector", "Linear space", "Field", "Ünïcode/中文 🎈"],
    "Linear space": "Vector",
    "Field": ["Elsewhere", "Broken", "Circle", "Talkative", "vector space"],
    "Stefan's \\ lemma": [],
    "Ünïcode/中文 🎈": ["é" * 127, "Hilbert space", "A_(b),_'c';_INSERT INTO"],
    "é" * 127: ["Hilbert space"],
    "Complete": ["Hilbert space", "Vector space", "Linear space"],
    "Elsewhere": "de:Irgendwo",
    "Broken": "Nowhere",
    "Circle": "Circular",
    "Circular": "Round",
    "Round": "Circle",
    "Talkative": "Talk:Vector",
    "Talk:Vector": ["Hilbert space", "Seen by talk alone"],
    "Alone": ["Hilbert space"],
}


def led(wiki, title):
    """The article behind a title, or None."""
    met = set()
    while isinstance(wiki.get(title), str) and title not in met:
        met.add(title)
        title = wiki[title]
    article = isinstance(wiki.get(title), list) and not title.startswith("Talk:")
    return title if article else None


def articles(wiki):
    return [title for title in wiki if led(wiki, title) == title]


def met_from(wiki, start, most):
    """The articles that a crawl meets first, by the rule in plain words."""
    queue, found = [start], []
    for title in queue:
        article = led(wiki, title)
        if article and article not in found and len(found) < most:
            found.append(article)
            new = [t for t in wiki[article] if t not in queue and ":" not in t]
            queue += sorted({t.replace("_", " ") for t in new} - set(queue))
    return found


def expected(wiki, ids, kept, start=None):
    """The four tables, by their definitions."""
    linked = {(a, t.replace("_", " ")) for a in kept for t in wiki[a]}
    linked = {(a, t) for a, t in linked if not t.startswith("Talk:")}
    titles = {t for _, t in linked} | ({start} if start else set())
    aliases = {t for t in titles if isinstance(wiki.get(t), str)}
    return {
        "pages": sorted(ids[a] for a in kept),
        "links": sorted(
            {
                (ids[a], ids[b])
                for a, t in linked
                if (b := led(wiki, t)) in kept and a != b
            }
        ),
        "aliases": sorted(
            ((t, ids[led(wiki, t)]) for t in aliases if led(wiki, t) in kept),
            key=lambda row: row[0].encode(),
        ),
        "missing": sorted((t for t in titles if t not in wiki), key=str.encode),
    }


def tables(folder):
    found = {name: pq.read_table(folder / f"{name}.parquet") for name in TABLES}
    assert all(found[name].schema == TABLES[name] for name in TABLES)
    rows = {
        name: [tuple(row.values()) for row in t.to_pylist()]
        for name, t in found.items()
    }
    return {
        "pages": [row[0] for row in rows["pages"]],
        "links": rows["links"],
        "aliases": rows["aliases"],
        "missing": [row[0] for row in rows["missing"]],
    }


@pytest.mark.parametrize("old", [False, True], ids=["by id", "by title"])
@pytest.mark.parametrize("suffix", [".gz", ".bz2", ""])
def test_a_known_wiki_gives_its_graph(tmp_path, suffix, old):
    dumps = dump_files.write(WIKI, tmp_path / "dumps", suffix=suffix, old=old)
    collection = collect(dumps, tmp_path / "out")
    ids = dump_files.numbered(WIKI)
    assert tables(tmp_path / "out") == expected(WIKI, ids, articles(WIKI))
    assert collection.about["wiki"] == "testwiki"
    assert collection.about["dates"]["dump"] == "20240101"
    assert {one.name for one in tmp_path.iterdir()} == {"dumps", "out", ".out.lock"}
