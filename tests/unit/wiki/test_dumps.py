"""Dump files of a known wiki give exactly its pages, links and titles."""

import dump_files
import numpy as np
import pyarrow.parquet as pq
import pytest
from fake_wiki import FakeWiki
from hypothesis import given, settings
from hypothesis import strategies as st
from wiki_proxy import fronting

from unalike import UserError
from unalike.wiki.api_client import CrawlPolicy
from unalike.wiki.collection import SCHEMAS
from unalike.wiki.crawl import crawl
from unalike.wiki.dumps import collect, files
from unalike.wiki.dumps.views import read_lines

EAGER = CrawlPolicy(rate=0.0, max_backoff=0.001)
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


def article_of(wiki, title):
    """The article of a title after redirects, or None; not over other namespaces."""
    visited = set()
    while isinstance(wiki.get(title), str) and title not in visited | {"Talk:A"}:
        visited.add(title)
        title = wiki[title]
    article = isinstance(wiki.get(title), list) and not title.startswith("Talk:")
    return title if article else None


def articles(wiki):
    return [title for title in wiki if article_of(wiki, title) == title]


def first_articles(wiki, start, max_pages):
    """The first articles of a breadth-first crawl."""
    queue, order = [start], []
    for title in queue:
        article = article_of(wiki, title)
        if article and article not in order and len(order) < max_pages:
            order.append(article)
            new = [t for t in wiki[article] if t not in queue and ":" not in t]
            queue += sorted({t.replace("_", " ") for t in new} - set(queue))
    return order


def expected(wiki, ids, selected, start=None):
    """The four tables, by their definitions."""
    linked = {(a, t.replace("_", " ")) for a in selected for t in wiki[a]}
    linked = {(a, t) for a, t in linked if not t.startswith("Talk:")}
    titles = {t for _, t in linked} | ({start} if start else set())
    aliases = {t for t in titles if isinstance(wiki.get(t), str)}
    return {
        "pages": sorted(ids[a] for a in selected),
        "links": sorted(
            {
                (ids[a], ids[b])
                for a, t in linked
                if (b := article_of(wiki, t)) in selected and a != b
            }
        ),
        "aliases": sorted(
            (
                (t, ids[article_of(wiki, t)])
                for t in aliases
                if article_of(wiki, t) in selected
            ),
            key=lambda row: row[0].encode(),
        ),
        "missing": sorted((t for t in titles if t not in wiki), key=str.encode),
    }


def tables(folder):
    content = {name: pq.read_table(folder / f"{name}.parquet") for name in SCHEMAS}
    assert all(content[name].schema == SCHEMAS[name] for name in SCHEMAS)
    rows = {
        name: [tuple(row.values()) for row in t.to_pylist()]
        for name, t in content.items()
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
    assert collection.metadata["wiki"] == "testwiki"
    assert collection.metadata["dates"]["dump"] == "20240101"
    assert {item.name for item in tmp_path.iterdir()} == {"dumps", "out", ".out.lock"}


TITLES = ["A", "B", "C", "Da", "D_a", "D b", "É", "Z z", "a", "Talk:A"]
LINKED = st.sampled_from([*TITLES, "Gone", "gone by"])
OWN = st.lists(LINKED, max_size=6) | st.sampled_from([*TITLES, "Gone", "de:X"])


@st.composite
def wikis(draw):
    titles = draw(st.lists(st.sampled_from(TITLES), min_size=1, unique=True))
    titles = list({title.replace("_", " ") for title in titles} - {"A"})
    wiki = {"A": draw(st.lists(LINKED, max_size=6))}
    for title in sorted(titles):
        wiki[title] = draw(OWN)
    return {
        title: own.replace("_", " ")
        if isinstance(own, str)
        else [item.replace("_", " ") for item in own]
        for title, own in wiki.items()
    }


@settings(max_examples=25)
@given(wiki=wikis(), old=st.booleans(), max_pages=st.integers(1, 6))
@pytest.mark.long
def test_any_wiki_gives_its_graph(tmp_path_factory, wiki, old, max_pages):
    folder = tmp_path_factory.mktemp("wiki")
    ids = dump_files.numbered(wiki)
    dumps = dump_files.write(wiki, folder / "dumps", old=old, suffix="")
    collect(dumps, folder / "all")
    assert tables(folder / "all") == expected(wiki, ids, articles(wiki))
    collect(dumps, folder / "some", start="A", pages=max_pages)
    selected = first_articles(wiki, "A", max_pages)
    assert tables(folder / "some") == expected(wiki, ids, selected, "A")


@pytest.mark.parametrize("max_pages", [1, 2, 3, 4, 5, 100, None])
@pytest.mark.parametrize("start", ["Hilbert space", "Vector", "hilbert_space"])
def test_a_start_title_selects_the_first_articles_of_a_crawl(
    tmp_path, start, max_pages
):
    dumps = dump_files.write(WIKI, tmp_path / "dumps")
    collection = collect(dumps, tmp_path / "out", start=start, pages=max_pages)
    title = start.replace("_", " ").replace("hilbert", "Hilbert")
    selected = first_articles(WIKI, title, max_pages or 100)
    ids = dump_files.numbered(WIKI)
    assert tables(tmp_path / "out") == expected(WIKI, ids, selected, title)
    assert collection.metadata["start"] == start
    assert "Alone" not in selected


VIEWS = {"Hilbert space": 10, "Vector": 5, "Vector space": 0, "Gone": 3, "Field": 7}


def views_of(folder):
    table = pq.read_table(folder / "pages.parquet")
    return dict(
        zip(*(table[name].to_pylist() for name in ("title", "views")), strict=True)
    )


@pytest.mark.parametrize(
    ("name", "codes", "hourly"),
    [
        ("pageviews-20240101-user.bz2", ["test.wikipedia"] * 2, False),
        ("pageviews-202401-user", ["test.wikipedia"], False),
        ("pageviews-20240101-000000.gz", ["test", "test.m"], True),
    ],
)
def test_views_are_summed_by_title(tmp_path, name, codes, hourly):
    dumps = dump_files.write(WIKI, tmp_path / "dumps")
    dump_files.write_views(VIEWS, dumps / name, codes=codes, hourly=hourly)
    later = name.replace("202401", "202402")
    dump_files.write_views({"Field": 1}, dumps / later, codes=codes, hourly=hourly)
    (dumps / "pageviews-20240101-spider.bz2").write_bytes(b"not for us")
    collection = collect(dumps, tmp_path / "out")
    views = views_of(tmp_path / "out")
    assert views["Hilbert space"] == 10
    assert views["Vector space"] == 0
    assert views["Field"] == 8
    assert views["Banach space"] is None
    assert collection.metadata["dates"]["views_from"].startswith("202401")
    assert collection.metadata["dates"]["views_to"].startswith("202402")
    assert collection.metadata["remarks"] == []


def test_lines_of_views_that_cannot_be_read_are_counted(tmp_path):
    dumps = dump_files.write(WIKI, tmp_path / "dumps")
    lines = b"test.wikipedia Field 5\ntest.wikipedia Field 1 desktop x A1\n"
    lines += b"test.wikipedia Field 1 desktop 4 A4"
    (dumps / "pageviews-202401-user").write_bytes(lines)
    collection = collect(dumps, tmp_path / "out")
    assert views_of(tmp_path / "out")["Field"] == 4
    assert collection.metadata["remarks"] == [
        "2 lines of page views could not be read."
    ]


def test_lines_of_views_with_empty_fields_are_counted(tmp_path):
    dumps = dump_files.write(WIKI, tmp_path / "dumps")
    lines = 800 * b"test  1 \n" + 3 * b"test Field  0\n" + b"test Field 4 0\n"
    (dumps / "pageviews-20240101-000000").write_bytes(lines)
    collection = collect(dumps, tmp_path / "out")
    assert views_of(tmp_path / "out")["Field"] == 4
    assert collection.metadata["remarks"] == [
        "803 lines of page views could not be read."
    ]


def test_reading_views_stops_at_the_last_line_that_its_arrays_hold():
    block = np.frombuffer(b"a b 1 0\na c 2 0\na d 3 0\n", np.uint8)
    codes, ends = np.frombuffer(b"a ", np.uint8), np.array([2])
    counts, offsets = np.full(3, -7), np.zeros(4, np.int64)
    arrays = (counts[:2], offsets[:3], np.empty(len(block), np.uint8))
    assert read_lines(block, codes, ends, *arrays) == (16, 2, 0)
    assert counts.tolist() == [1, 2, -7]


def test_a_view_file_without_line_ends_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 1 << 18)
    dumps = dump_files.write(WIKI, tmp_path / "dumps")
    (dumps / "pageviews-20240101-000000").write_bytes(b"x" * (3 << 20))
    with pytest.raises(UserError, match="a line has more than 1,048,576 bytes"):
        collect(dumps, tmp_path / "out")


def test_without_view_files_pages_have_no_views(tmp_path):
    collection = collect(dump_files.write(WIKI, tmp_path / "dumps"), tmp_path / "out")
    assert set(views_of(tmp_path / "out").values()) == {None}
    assert "no file of page views" in collection.metadata["remarks"][0]


FAKE = FakeWiki(
    {
        "Start": ["Alias", "Twice", "Circle", "Missing item", "Übung", "Broken"],
        "Übung": ["Start", "Very far", "Alias"],
        "Very far": ["Leaf", "Back", "Missing two"],
        "Leaf": ["Start"],
        "Unreached": ["Start"],
    },
    {
        "Alias": "Übung",
        "Twice": "Alias",
        "Circle": "Round",
        "Round": "Circle",
        "Broken": "Nowhere",
        "Back": "Start",
    },
)


@pytest.mark.parametrize("max_pages", [2, 3, 100])
def test_dumps_and_crawl_give_the_same_tables(tmp_path, max_pages):
    wiki = {**FAKE.articles, **FAKE.redirects}
    ids = {title: FAKE.page_id(title) for title in wiki}
    dumps = dump_files.write(wiki, tmp_path / "dumps", ids=ids)
    collect(dumps, tmp_path / "read", start="Twice", pages=max_pages)
    with fronting(FAKE) as front:
        crawl(front.address, "Twice", max_pages, tmp_path / "crawled", policy=EAGER)
    assert tables(tmp_path / "read") == tables(tmp_path / "crawled")
