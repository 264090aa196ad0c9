"""A wiki that sends odd documents: one line, and the crawl goes on when it is well."""

import json
import random
import shutil

import pytest
from fake_wiki import FakeWiki
from wiki_proxy import fronting

from unalike import UserError
from unalike.wiki.api_client import CrawlPolicy
from unalike.wiki.crawl import crawl

POLICY = CrawlPolicy(rate=0.0, max_attempts=2, initial_backoff=0.0, max_backoff=0.0)
WIKI = FakeWiki({"Start": ["A", "B", "Gone"], "A": ["Start", "B"], "B": ["A"]})
DEEP = "@deep@"
ODD = [None, True, -1, 2**70, 1e999, float("nan"), "", "\ud800", [], {}, DEEP, 2**49]


def mutated(document, rng: random.Random):
    """The document with one of its values replaced by an odd one."""
    parents = []

    def walk(node):
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            parents.append((node, key))
            if isinstance(value, dict | list):
                walk(value)

    walk(document)
    node, key = rng.choice(parents)
    node[key] = rng.choice(ODD)
    return document


def test_odd_documents_end_in_a_collection_or_an_error_of_one_line(
    tmp_path, some, monkeypatch
):
    real, state = json.dumps, {}
    deep = "[" * 100_000 + "]" * 100_000

    def dumps(value, **how):
        return real(value, **how).replace(f'"{DEEP}"', deep)

    def backend(form):
        document = WIKI(form)
        rng = state["rng"]
        return mutated(document, rng) if rng and rng.random() < 0.5 else document

    monkeypatch.setattr("wiki_proxy.json.dumps", dumps)
    with fronting(backend) as front:
        for rng in some:
            state["rng"], out = rng, tmp_path / "c"
            try:
                crawl(front.address, "Start", 3, out, policy=POLICY)
            except UserError as error:
                assert "\n" not in str(error)
                state["rng"] = None
                crawl(front.address, "Start", 3, out, policy=POLICY)
            shutil.rmtree(out)


@pytest.mark.parametrize("period", [1, 2, 3, 10**9])
def test_a_continuation_without_progress_is_an_error(tmp_path, period):
    calls = iter(range(10**9))

    def backend(form):
        document = WIKI(form)
        if "titles" in form and "prop" in form:
            document["continue"] = {"plcontinue": str(next(calls) % period)}
        return document

    with fronting(backend) as front, pytest.raises(UserError, match="without end"):
        crawl(front.address, "Start", 3, tmp_path / "c", policy=POLICY)
    assert next(calls) < 300
    with fronting(WIKI) as front:
        pages = crawl(front.address, "Start", 3, tmp_path / "d", policy=POLICY)
    assert pages.folder == tmp_path / "d"
