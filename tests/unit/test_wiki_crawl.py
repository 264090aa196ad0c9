"""A crawl finds exactly what the wiki holds, whatever goes wrong on the way."""

import os
import signal
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from children import child
from fake_wiki import FakeWiki, normal
from hypothesis import given, settings
from hypothesis import strategies as st
from wiki_proxy import DAYS, FAULTS, fronting

from unalike.errors import UserError
from unalike.wiki.api_client import CrawlPolicy, parse_retry_after
from unalike.wiki.collection import SCHEMAS, Collection
from unalike.wiki.crawl import crawl

EAGER = CrawlPolicy(rate=0.0, longest_wait=0.001, timeout=20.0)

SMALL = FakeWiki(
    {
        "Start": [
            "Start",
            "alias",
            "Twice",
            "Circle",
            "Missing_one",
            "Übung",
            "Broken",
        ],
        "Übung": ["Start", "Very far", "Me"],
        "Very far": [f"Leaf {number}" for number in range(60)] + ["Back"],
        "Unreached": ["Start"],
        **{f"Leaf {number}": ["Missing two"] for number in range(50)},
    },
    {
        "Alias": "Übung",
        "Twice": "Alias",
        "Circle": "Round",
        "Round": "Circle",
        "Me": "Übung",
        "Broken": "Nowhere",
        "Back": "Start",
    },
)


def rows(collection: Collection) -> dict[str, list[tuple]]:
    return {
        name: [
            tuple(row.values())
            for row in pq.read_table(collection.folder / f"{name}.parquet").to_pylist()
        ]
        for name in SCHEMAS
    }


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_crawl_finds_the_whole_wiki(tmp_path, at_once):
    manners = CrawlPolicy(rate=0.0, at_once=at_once, contact="me@example.org")
    with fronting(SMALL) as front:
        found = crawl(front.address, "start", 1000, tmp_path / "c", manners=manners)
        assert rows(found) == SMALL.mean_score("start", 1000)
        assert len(front.agents) == 1 and "me@example.org" in front.agents.pop()
        assert front.most_at_once <= at_once
        assert {form["maxlag"] for form in front.asked} == {"5"}
    found.check()
    assert Collection.open(tmp_path / "c").about == found.about
    assert found.about["start"] == "start" and found.about["wiki"] == front.address
    assert found.about["counts"]["pages"] == 53
    assert found.about["dates"]["views_from"] == min(DAYS)
    assert found.about["site"]["licence"] == "CC BY-SA 4.0"
    assert not list(tmp_path.glob(".c.crawl"))


TITLES = ["A", "B", "C", "Dé", "E", "F g", "H", "I", "Jj"]


@st.composite
def wikis(draw):
    kinds = draw(st.lists(st.booleans(), min_size=len(TITLES), max_size=len(TITLES)))
    some = st.lists(st.sampled_from([*TITLES, "b", "Gone", "Lost"]), max_size=6)
    articles = {t: draw(some) for t, kept in zip(TITLES, kinds, strict=True) if kept}
    others = [title for title in TITLES if title not in articles]
    redirected = draw(st.lists(st.sampled_from(others), unique=True)) if others else []
    targets = st.sampled_from([*TITLES, "Gone"])
    redirects = {title: draw(targets) for title in redirected}
    sizes = st.tuples(*[st.integers(1, 4)] * 3)
    return FakeWiki(articles, redirects, limits=draw(sizes))


@settings(max_examples=25)
@given(
    wiki=wikis(),
    wanted=st.integers(1, 9),
    at_once=st.integers(1, 4),
    faults=st.lists(st.sampled_from(sorted({*FAULTS} - {"slow"})), max_size=12),
    start=st.sampled_from(["A", "b", "Dé", "F_g"]),
)
def test_any_wiki_is_found_as_it_is(wiki, wanted, at_once, faults, start):
    manners = CrawlPolicy(rate=0.0, at_once=at_once, tries=14, longest_wait=0.001)
    with TemporaryDirectory() as folder, fronting(wiki) as front:
        front.faults = list(faults)
        out = Path(folder) / "c"
        if wiki.advantage_over(normal(start)) is None:
            with pytest.raises(UserError, match="has no article"):
                crawl(front.address, start, wanted, out, manners=manners)
            assert not out.exists()
        else:
            found = crawl(front.address, start, wanted, out, manners=manners)
            assert rows(found) == wiki.mean_score(start, wanted)


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_every_fault_passes(tmp_path, fault):
    with fronting(SMALL) as front:
        front.faults = ["", "", "", fault, "", fault, fault]
        found = crawl(front.address, "Start", 9, tmp_path / "c", manners=EAGER)
        assert rows(found) == SMALL.mean_score("Start", 9)


def test_no_article_is_read_that_is_not_wanted(tmp_path):
    with fronting(SMALL) as front:
        crawl(front.address, "Start", 5, tmp_path / "c", manners=EAGER)
        read = [
            form["titles"] for form in front.asked if "links" in form.get("prop", "")
        ]
    titles = {title for titles in read for title in titles.split("|")}
    assert {SMALL.advantage_over(title) for title in titles} - {None} == set(
        SMALL.reached("Start", 5)
    )


def test_a_wiki_may_ask_for_a_rest(tmp_path):
    with fronting(SMALL) as front:
        front.faults, front.retry_after = ["", "", "", "429"], "0.5"
        began = time.monotonic()
        crawl(front.address, "Start", 1, tmp_path / "c", manners=EAGER)
        assert time.monotonic() - began >= 0.5


def test_the_rate_is_kept(tmp_path):
    with fronting(SMALL) as front:
        began = time.monotonic()
        manners = CrawlPolicy(rate=20.0, at_once=4)
        crawl(front.address, "Start", 60, tmp_path / "c", manners=manners)
        assert time.monotonic() - began >= (len(front.asked) - 1) / 20.0


def test_a_wiki_that_stays_broken_ends_the_crawl_but_not_its_state(tmp_path):
    with fronting(SMALL) as front:
        front.faults = [""] * 5 + ["503"] * 3
        manners = CrawlPolicy(rate=0.0, longest_wait=0.001, tries=3)
        with pytest.raises(UserError, match=r"3 tries \(status 503\).*goes on later"):
            crawl(front.address, "Start", 60, tmp_path / "c", manners=manners)
        asked = len(front.asked)
        found = crawl(front.address, "Start", 60, tmp_path / "c", manners=manners)
        assert rows(found) == SMALL.mean_score("Start", 60)
        assert max(front.answered.values()) == 1
        again = crawl(front.address, "Start", 60, tmp_path / "c", manners=manners)
        assert again.about == found.about and len(front.asked) > asked


@pytest.mark.parametrize(
    ("extras", "told"),
    [((), 2), (("extracts",), 1), (("pageviews",), 1)],
    ids=["neither", "intros", "views"],
)
def test_a_wiki_may_lack_extensions(tmp_path, extras, told):
    wiki = FakeWiki(SMALL.articles, SMALL.redirects, extras=extras)
    heard = []
    with fronting(wiki) as front:
        found = crawl(
            front.address,
            *("Start", 60, tmp_path / "c"),
            manners=EAGER,
            tell=heard.append,
        )
    assert rows(found) == wiki.mean_score("Start", 60)
    assert len(heard) == told and heard == found.about["remarks"]


def crawl_slowly(address, out, at_once):
    manners = CrawlPolicy(rate=0.0, at_once=at_once)
    crawl(address, "Start", 60, out, manners=manners)


@pytest.mark.parametrize("at_once", [1, 3])
def test_kills_lose_at_most_what_was_under_way(tmp_path, at_once):
    wiki = FakeWiki(SMALL.articles, SMALL.redirects, limits=(5, 4, 7))
    kills = 0
    with fronting(wiki) as front:
        front.pause = 0.02
        while True:
            before = len(front.asked)
            process = child(crawl_slowly, front.address, tmp_path / "c", at_once)
            while process.is_alive() and len(front.asked) < before + 4 + kills:
                time.sleep(0.003)
            if not process.is_alive() or kills == 3:
                break
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            kills += 1
        process.join()
        assert process.exitcode == 0 and kills == 3
        repeated = sum(count - 1 for count in front.answered.values())
    assert repeated <= kills * at_once
    assert rows(Collection.open(tmp_path / "c")) == wiki.mean_score("Start", 60)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"start": "Other"}, "start 'Start', not 'Other'"),
        ({"pages": 7}, "pages '60', not '7'"),
    ],
    ids=["start", "pages"],
)
def test_another_crawl_needs_another_folder(tmp_path, given, message):
    asked = {"start": "Start", "pages": 60, "out": tmp_path / "c", "manners": EAGER}
    with fronting(SMALL) as front:
        front.faults = [""] * 4 + ["503"]
        once = CrawlPolicy(rate=0.0, tries=1)
        with pytest.raises(UserError, match="goes on later"):
            crawl(front.address, **asked | {"manners": once})
        with pytest.raises(UserError, match=message):
            crawl(front.address, **asked | given)
        crawl(front.address, **asked)
        with pytest.raises(UserError, match=message):
            crawl(front.address, **asked | given)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ftp://example.org/api.php", "kind of address"),
        ("file:///etc/passwd", "no address of an api.php"),
        ("example.org/api.php", "no address of an api.php"),
        ("http://example.org:port/api.php", "no address of an api.php"),
        ("http://me:secret@example.org/api.php", "more to it"),
        ("http://example.org/api.php?x=1", "more to it"),
    ],
)
def test_only_web_addresses_are_asked(tmp_path, address, message):
    with pytest.raises(UserError, match=message):
        crawl(address, "Start", 1, tmp_path / "c")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"pages": 0}, "1 or more pages"),
        ({"start": " "}, "cannot be the title"),
        ({"start": "A|B"}, "cannot be the title"),
        ({"start": "ü" * 200}, "cannot be the title"),
        ({"manners": CrawlPolicy(contact="me\nHost: you")}, "printable"),
    ],
    ids=["pages", "empty", "two", "long", "contact"],
)
def test_nonsense_is_refused(tmp_path, asked, message):
    known = {"start": "Start", "pages": 1, "out": tmp_path / "c"}
    with fronting(SMALL) as front:
        with pytest.raises(UserError, match=message):
            crawl(front.address, **known | asked)
        assert not front.asked


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"errors": [{"code": "nope", "text": "Not you."}]}, "error nope: Not you"),
        ({"error": {"code": "readapidenied", "info": "Log in."}}, "Log in"),
        ({"errors": "strange"}, "strange"),
    ],
    ids=["plain", "old", "strange"],
)
def test_errors_of_the_wiki_are_told(tmp_path, told, message):
    with fronting(lambda _: told) as front, pytest.raises(UserError, match=message):
        crawl(front.address, "Start", 1, tmp_path / "c", manners=EAGER)


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        ("moved", "answers 301 and points to https://elsewhere"),
        ("forbidden", "answers 403"),
        ("page", "is a web page"),
        ("bomb", "more than 67,108,864 bytes"),
    ],
)
def test_refusals_end_the_crawl_at_once(tmp_path, refusal, message):
    with fronting(SMALL) as front:
        front.faults = ["", "", refusal]
        with pytest.raises(UserError, match=message):
            crawl(front.address, "Start", 1, tmp_path / "c", manners=EAGER)
        assert len(front.asked) == 3


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        (None, 0, 0),
        ("7", 7, 7),
        ("-3", 0, 0),
        ("soon", 0, 0),
        ("nan", 0, 3600),
        ("1e9", 3600, 3600),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 0),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 3600, 3600),
        ("Fri, 01 Jan 2100 00:00:00 -0000", 3600, 3600),
    ],
)
def test_a_rest_is_a_number_or_a_date_and_has_an_end(header, least, most):
    assert least <= parse_retry_after(header) <= most


def test_an_answer_that_never_ends_is_noticed(tmp_path):
    def backend(form):
        told = SMALL(form)
        if "titles" in form:
            told["continue"] = {"plcontinue": "0"}
        return told

    with fronting(backend) as front, pytest.raises(UserError, match="same answer"):
        crawl(front.address, "Start", 1, tmp_path / "c", manners=EAGER)


def test_a_damaged_state_is_named(tmp_path):
    (tmp_path / ".c.crawl").mkdir()
    (tmp_path / ".c.crawl" / "state.db").write_bytes(b"no database" * 99)
    with pytest.raises(UserError, match=r"state\.db.*not a database"):
        crawl("http://127.0.0.1:9/api.php", "Start", 1, tmp_path / "c", manners=EAGER)
