"""A crawl gives exactly the content of the wiki, whatever network faults occur."""

import os
import signal
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from fake_wiki import FakeWiki, normal
from forked_processes import child
from hypothesis import given, settings
from hypothesis import strategies as st
from wiki_proxy import DAYS, FAULTS, fronting

from unalike.errors import UserError
from unalike.wiki.api_client import CrawlPolicy, parse_retry_after
from unalike.wiki.collection import SCHEMAS, Collection
from unalike.wiki.crawl import crawl

EAGER = CrawlPolicy(rate=0.0, max_backoff=0.001, timeout=20.0)

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
def test_a_crawl_reads_all_of_a_wiki(tmp_path, at_once):
    policy = CrawlPolicy(rate=0.0, concurrency=at_once, contact="me@example.org")
    with fronting(SMALL) as front:
        collection = crawl(front.address, "start", 1000, tmp_path / "c", policy=policy)
        assert rows(collection) == SMALL.expected("start", 1000)
        assert len(front.agents) == 1 and "me@example.org" in front.agents.pop()
        assert front.max_concurrent <= at_once
        assert {form["maxlag"] for form in front.requests} == {"5"}
    collection.verify()
    assert Collection.open(tmp_path / "c").metadata == collection.metadata
    assert (
        collection.metadata["start"] == "start"
        and collection.metadata["wiki"] == front.address
    )
    assert collection.metadata["counts"]["pages"] == 53
    assert collection.metadata["dates"]["views_from"] == min(DAYS)
    assert collection.metadata["site"] == {
        "name": "Fake",
        "software": "Fake 1",
        "language": "en",
        "licence": "CC BY-SA 4.0",
        "licence_address": "https://example.org",
        "extras": ["extracts", "pageviews"],
    }
    assert not list(tmp_path.glob(".c.crawl"))


TITLES = ["A", "B", "C", "Dé", "E", "F g", "H", "I", "Jj"]


@st.composite
def wikis(draw):
    kinds = draw(st.lists(st.booleans(), min_size=len(TITLES), max_size=len(TITLES)))
    some = st.lists(st.sampled_from([*TITLES, "b", "Gone", "Lost"]), max_size=6)
    articles = {
        t: draw(some) for t, is_article in zip(TITLES, kinds, strict=True) if is_article
    }
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
@pytest.mark.long
def test_any_wiki_is_read_exactly(wiki, wanted, at_once, faults, start):
    policy = CrawlPolicy(
        rate=0.0, concurrency=at_once, max_attempts=14, max_backoff=0.001
    )
    with TemporaryDirectory() as folder, fronting(wiki) as front:
        front.faults = list(faults)
        out = Path(folder) / "c"
        if wiki.article_of(normal(start)) is None:
            with pytest.raises(UserError, match="has no article"):
                crawl(front.address, start, wanted, out, policy=policy)
            assert not out.exists()
        else:
            collection = crawl(front.address, start, wanted, out, policy=policy)
            assert rows(collection) == wiki.expected(start, wanted)


@pytest.mark.parametrize("fault", sorted(FAULTS))
@pytest.mark.long
def test_every_transient_fault_is_retried(tmp_path, fault):
    with fronting(SMALL) as front:
        front.faults = ["", "", "", fault, "", fault, fault]
        collection = crawl(front.address, "Start", 9, tmp_path / "c", policy=EAGER)
        assert rows(collection) == SMALL.expected("Start", 9)


def test_no_article_is_read_beyond_the_limit(tmp_path):
    with fronting(SMALL) as front:
        crawl(front.address, "Start", 5, tmp_path / "c", policy=EAGER)
        read = [
            form["titles"] for form in front.requests if "links" in form.get("prop", "")
        ]
    titles = {title for titles in read for title in titles.split("|")}
    assert {SMALL.article_of(title) for title in titles} - {None} == set(
        SMALL.reached("Start", 5)
    )


def test_retry_after_is_respected(tmp_path):
    with fronting(SMALL) as front:
        front.faults, front.retry_after = ["", "", "", "429"], "0.5"
        began = time.monotonic()
        crawl(front.address, "Start", 1, tmp_path / "c", policy=EAGER)
        assert time.monotonic() - began >= 0.5


def test_the_rate_limit_is_respected(tmp_path):
    with fronting(SMALL) as front:
        began = time.monotonic()
        policy = CrawlPolicy(rate=20.0, concurrency=4)
        crawl(front.address, "Start", 60, tmp_path / "c", policy=policy)
        assert time.monotonic() - began >= (len(front.requests) - 1) / 20.0


def test_a_crawl_resumes_after_too_many_failed_attempts(tmp_path):
    with fronting(SMALL) as front:
        front.faults = [""] * 5 + ["503"] * 3
        policy = CrawlPolicy(rate=0.0, max_backoff=0.001, max_attempts=3)
        with pytest.raises(UserError, match=r"3 attempts \(status 503\).*to resume"):
            crawl(front.address, "Start", 60, tmp_path / "c", policy=policy)
        count = len(front.requests)
        collection = crawl(front.address, "Start", 60, tmp_path / "c", policy=policy)
        assert rows(collection) == SMALL.expected("Start", 60)
        assert max(front.answered.values()) == 1
        again = crawl(front.address, "Start", 60, tmp_path / "c", policy=policy)
        assert again.metadata == collection.metadata and len(front.requests) > count


@pytest.mark.parametrize(
    ("extras", "num_notes"),
    [((), 2), (("extracts",), 1), (("pageviews",), 1)],
    ids=["neither", "intros", "views"],
)
@pytest.mark.long
def test_a_wiki_may_lack_extensions(tmp_path, extras, num_notes):
    wiki = FakeWiki(SMALL.articles, SMALL.redirects, extras=extras)
    notes = []
    with fronting(wiki) as front:
        collection = crawl(
            front.address,
            *("Start", 60, tmp_path / "c"),
            policy=EAGER,
            on_note=notes.append,
        )
    assert rows(collection) == wiki.expected("Start", 60)
    assert len(notes) == num_notes and notes == collection.metadata["remarks"]


def crawl_slowly(address, out, at_once):
    policy = CrawlPolicy(rate=0.0, concurrency=at_once)
    crawl(address, "Start", 60, out, policy=policy)


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.long
def test_a_killed_crawl_repeats_only_open_requests(tmp_path, at_once):
    wiki = FakeWiki(SMALL.articles, SMALL.redirects, limits=(5, 4, 7))
    kills = 0
    with fronting(wiki) as front:
        front.pause = 0.02
        while True:
            before = len(front.requests)
            process = child(crawl_slowly, front.address, tmp_path / "c", at_once)
            while process.is_alive() and len(front.requests) < before + 4 + kills:
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
    assert rows(Collection.open(tmp_path / "c")) == wiki.expected("Start", 60)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"start": "Other"}, "start 'Start', not 'Other'"),
        ({"pages": 7}, "pages '60', not '7'"),
    ],
    ids=["start", "pages"],
)
def test_another_crawl_needs_another_folder(tmp_path, given, message):
    arguments = {"start": "Start", "pages": 60, "out": tmp_path / "c", "policy": EAGER}
    with fronting(SMALL) as front:
        front.faults = [""] * 4 + ["503"]
        once = CrawlPolicy(rate=0.0, max_attempts=1)
        with pytest.raises(UserError, match="to resume"):
            crawl(front.address, **arguments | {"policy": once})
        with pytest.raises(UserError, match=message):
            crawl(front.address, **arguments | given)
        crawl(front.address, **arguments)
        with pytest.raises(UserError, match=message):
            crawl(front.address, **arguments | given)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ftp://example.org/api.php", "URL scheme"),
        ("file:///etc/passwd", "not the URL of an api.php"),
        ("example.org/api.php", "not the URL of an api.php"),
        ("http://example.org:port/api.php", "not the URL of an api.php"),
        ("http://me:secret@example.org/api.php", "host and path only"),
        ("http://example.org/api.php?x=1", "host and path only"),
    ],
)
def test_only_http_urls_of_an_api_are_accepted(tmp_path, address, message):
    with pytest.raises(UserError, match=message):
        crawl(address, "Start", 1, tmp_path / "c")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pages": 0}, "1 or more pages"),
        ({"start": " "}, "cannot be the title"),
        ({"start": "A|B"}, "cannot be the title"),
        ({"start": "ü" * 200}, "cannot be the title"),
        ({"policy": CrawlPolicy(contact="me\nHost: you")}, "printable"),
    ],
    ids=["pages", "empty", "two", "long", "contact"],
)
def test_invalid_arguments_are_errors_without_a_request(tmp_path, arguments, message):
    known = {"start": "Start", "pages": 1, "out": tmp_path / "c"}
    with fronting(SMALL) as front:
        with pytest.raises(UserError, match=message):
            crawl(front.address, **known | arguments)
        assert not front.requests


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"errors": [{"code": "nope", "text": "Not you."}]}, "error nope: Not you"),
        ({"error": {"code": "readapidenied", "info": "Log in."}}, "Log in"),
        ({"errors": "strange"}, "strange"),
    ],
    ids=["plain", "old", "strange"],
)
def test_errors_of_the_api_are_raised(tmp_path, document, message):
    with fronting(lambda _: document) as front, pytest.raises(UserError, match=message):
        crawl(front.address, "Start", 1, tmp_path / "c", policy=EAGER)


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        ("moved", "status 301 and redirects to https://elsewhere"),
        ("forbidden", "has status 403"),
        ("page", "is a web page"),
        ("bomb", "more than 67,108,864 bytes"),
    ],
)
def test_permanent_errors_are_not_retried(tmp_path, refusal, message):
    with fronting(SMALL) as front:
        front.faults = ["", "", refusal]
        with pytest.raises(UserError, match=message):
            crawl(front.address, "Start", 1, tmp_path / "c", policy=EAGER)
        assert len(front.requests) == 3


@pytest.mark.parametrize(
    ("header", "low", "high"),
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
def test_retry_after_is_a_bounded_number_or_date(header, low, high):
    assert low <= parse_retry_after(header) <= high


def test_an_endless_continuation_is_an_error(tmp_path):
    def backend(form):
        document = SMALL(form)
        if "titles" in form:
            document["continue"] = {"plcontinue": "0"}
        return document

    with fronting(backend) as front, pytest.raises(UserError, match="same response"):
        crawl(front.address, "Start", 1, tmp_path / "c", policy=EAGER)


def test_a_damaged_state_file_is_an_error(tmp_path):
    (tmp_path / ".c.crawl").mkdir()
    (tmp_path / ".c.crawl" / "state.db").write_bytes(b"no database" * 99)
    with pytest.raises(UserError, match=r"state\.db.*not a database"):
        crawl("http://127.0.0.1:9/api.php", "Start", 1, tmp_path / "c", policy=EAGER)
