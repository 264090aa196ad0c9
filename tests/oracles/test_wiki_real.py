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


def named(content):
    """The links of a collection by title."""
    titles = {page["page_id"]: page["title"] for page in content["pages"]}
    return {
        (titles[link["source"]], titles[link["target"]]) for link in content["links"]
    }


KNOWN = {(title, other) for title, others in LINKS.items() for other in others}


def check(content):
    titles = {page["page_id"]: page["title"] for page in content["pages"]}
    assert set(titles.values()) == set(LINKS)
    assert named(content) == KNOWN and len(content["links"]) == len(KNOWN)
    aliases = {row["alias"]: titles[row["page_id"]] for row in content["aliases"]}
    assert aliases == ALIASES
    assert {row["title"] for row in content["missing"]} == MISSING


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_mediawiki_is_read_exactly(wiki, tmp_path, at_once):
    policy = CrawlPolicy(rate=0.0, concurrency=at_once)
    notes = []
    collection = crawl(
        *(wiki, "start", 10_000, tmp_path / "c"), policy=policy, on_note=notes.append
    )
    content = tables(collection)
    check(content)
    intros = {page["title"]: page["intro"] for page in content["pages"]}
    assert intros["Start"].startswith("Start is where it begins, with itself")
    assert "Of Quotes" not in intros["Start"]
    assert intros[LONG].startswith("Long.")
    assert {page["views"] for page in content["pages"]} == {None}
    assert len(notes) == 1 and "PageViewInfo" in notes[0]
    site = collection.metadata["site"]
    assert (
        site["software"].startswith("MediaWiki") and "by-sa" in site["licence_address"]
    )


def test_network_faults_do_not_change_the_collection(wiki, tmp_path):
    with fronting(WithViews(wiki)) as front:
        front.faults = ["", "", "", *(f for name in sorted(FAULTS) for f in (name, ""))]
        policy = CrawlPolicy(rate=0.0, concurrency=3, max_backoff=0.01)
        full = crawl(front.address, "Start", 10_000, tmp_path / "full", policy=policy)
        front.faults = [name for name in FAULTS for _ in range(2)]
        patient = CrawlPolicy(rate=0.0, max_backoff=0.01, max_attempts=30)
        part = crawl(front.address, "Start", 30, tmp_path / "part", policy=patient)
    content = tables(full)
    check(content)
    for page in content["pages"]:
        assert page["views"] == total_views(page["page_id"])
    first = tables(part)
    titles = {page["title"] for page in first["pages"]}
    assert len(titles) == 30 and {"Start", *LINKS["Start"]} <= titles
    assert named(first) == {link for link in KNOWN if titles.issuperset(link)}


def test_the_graph_has_the_links_of_the_wiki(wiki, tmp_path):
    with fronting(WithViews(wiki)) as front:
        policy = CrawlPolicy(rate=0.0, concurrency=4)
        collection = crawl(front.address, "Start", 600, tmp_path / "c", policy=policy)
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("small 1 0\npage 0 1\nstart 2 2\n")
    stored = build_graph(collection, tmp_path / "graph", vectors=vectors)
    verify_graph(tmp_path / "graph")
    names = stored.names.to_pylist()
    rows = stored.graph.adjacency
    pairs = zip(rows.row_indices.tolist(), rows.indices.tolist(), strict=True)
    assert {(names[a], names[b]) for a, b in pairs} == KNOWN
    assert stored.graph.features[names.index("Small page 7")].tolist()[:2] == [0.5, 0.5]
    assert stored.graph.labels[stored.graph.labels >= 0].unique().tolist() == [
        *range(5)
    ]
