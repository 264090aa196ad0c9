"""A real MediaWiki, crawled: exactly its links, whatever stands in between."""

import mediawiki
import pyarrow.parquet as pq
import pytest
from wiki_proxy import FAULTS, WithViews, fronting, total_views
from wiki_texts import ALIASES, LINKS, LONG, MISSING, TEXTS

from unalike.data.store import verify_graph
from unalike.wiki.api_client import CrawlPolicy
from unalike.wiki.build import build_graph
from unalike.wiki.crawl import crawl

pytestmark = [
    pytest.mark.wiki,
    pytest.mark.skipif(bool(mediawiki.lack()), reason=mediawiki.lack() or ""),
]


@pytest.fixture(scope="module")
def wiki(tmp_path_factory):
    with mediawiki.serving(tmp_path_factory.mktemp("wiki"), TEXTS) as address:
        yield address


def tables(collection):
    names = ("pages", "links", "aliases", "missing")
    return {
        name: pq.read_table(collection.folder / f"{name}.parquet").to_pylist()
        for name in names
    }


def named(found):
    """The links of a collection by title."""
    titles = {page["page_id"]: page["title"] for page in found["pages"]}
    return {(titles[link["source"]], titles[link["target"]]) for link in found["links"]}


KNOWN = {(title, other) for title, others in LINKS.items() for other in others}


def check(found):
    titles = {page["page_id"]: page["title"] for page in found["pages"]}
    assert set(titles.values()) == set(LINKS)
    assert named(found) == KNOWN and len(found["links"]) == len(KNOWN)
    aliases = {row["alias"]: titles[row["page_id"]] for row in found["aliases"]}
    assert aliases == ALIASES
    assert {row["title"] for row in found["missing"]} == MISSING


@pytest.mark.parametrize("at_once", [1, 4])
def test_the_wiki_itself_is_read_exactly(wiki, tmp_path, at_once):
    manners = CrawlPolicy(rate=0.0, at_once=at_once)
    heard = []
    collection = crawl(
        *(wiki, "start", 10_000, tmp_path / "c"), manners=manners, tell=heard.append
    )
    found = tables(collection)
    check(found)
    intros = {page["title"]: page["intro"] for page in found["pages"]}
    assert intros["Start"].startswith("Start is where it begins, with itself")
    assert "Of Quotes" not in intros["Start"]
    assert intros[LONG].startswith("Long.")
    assert {page["views"] for page in found["pages"]} == {None}
    assert len(heard) == 1 and "PageViewInfo" in heard[0]
    site = collection.about["site"]
    assert (
        site["software"].startswith("MediaWiki") and "by-sa" in site["licence_address"]
    )


def test_faults_change_nothing(wiki, tmp_path):
    with fronting(WithViews(wiki)) as front:
        front.faults = ["", "", "", *(f for name in sorted(FAULTS) for f in (name, ""))]
        manners = CrawlPolicy(rate=0.0, at_once=3, longest_wait=0.01)
        whole = crawl(
            front.address, "Start", 10_000, tmp_path / "whole", manners=manners
        )
        front.faults = [name for name in FAULTS for _ in range(2)]
        one = CrawlPolicy(rate=0.0, longest_wait=0.01, tries=30)
        part = crawl(front.address, "Start", 30, tmp_path / "part", manners=one)
    found = tables(whole)
    check(found)
    for page in found["pages"]:
        assert page["views"] == total_views(page["page_id"])
    first = tables(part)
    kept = {page["title"] for page in first["pages"]}
    assert len(kept) == 30 and {"Start", *LINKS["Start"]} <= kept
    assert named(first) == {link for link in KNOWN if kept.issuperset(link)}


def test_the_graph_is_the_wiki(wiki, tmp_path):
    with fronting(WithViews(wiki)) as front:
        manners = CrawlPolicy(rate=0.0, at_once=4)
        collection = crawl(front.address, "Start", 600, tmp_path / "c", manners=manners)
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("small 1 0\npage 0 1\nstart 2 2\n")
    stored = build_graph(collection, tmp_path / "graph", vectors=vectors)
    verify_graph(tmp_path / "graph")
    names = stored.names.to_pylist()
    rows = stored.graph.adjacency
    pairs = zip(rows.row_indices.tolist(), rows.columns.tolist(), strict=True)
    assert {(names[a], names[b]) for a, b in pairs} == KNOWN
    assert stored.graph.features[names.index("Small page 7")].tolist()[:2] == [0.5, 0.5]
    assert stored.graph.labels[stored.graph.labels >= 0].unique().tolist() == [
        *range(5)
    ]
