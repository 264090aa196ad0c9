"""A real MediaWiki: its tables as dumps give what a crawl of it gives."""

import dump_files
import mediawiki
import pyarrow.parquet as pq
import pytest
from wiki_texts import LINKS, TEXTS

from unalike.wiki.api_client import CrawlPolicy
from unalike.wiki.collection import SCHEMAS
from unalike.wiki.crawl import crawl
from unalike.wiki.dumps import collect

pytestmark = [
    pytest.mark.wiki,
    pytest.mark.skipif(bool(mediawiki.lack()), reason=mediawiki.lack() or ""),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("wiki")


@pytest.fixture(scope="module")
def wiki(home):
    with mediawiki.serving(home, TEXTS) as address:
        yield address


def tables(collection):
    """All tables, without the texts that dumps do not have."""
    found = {
        name: pq.read_table(collection.folder / f"{name}.parquet") for name in SCHEMAS
    }
    found["pages"] = found["pages"].drop_columns(["intro"])
    return {name: table.to_pylist() for name, table in found.items()}


@pytest.mark.parametrize("old", [True, False], ids=["by title", "by id"])
@pytest.mark.parametrize(
    ("start", "pages"), [("Start", 10_000), ("Start", 30), ("Triple", 5)]
)
def test_dumps_and_crawl_agree(wiki, home, tmp_path, start, pages, old):
    manners = CrawlPolicy(rate=0.0, at_once=4)
    crawled = crawl(wiki, start, pages, tmp_path / "crawled", manners=manners)
    database = home / "database" / "wiki.sqlite"
    dumps = dump_files.write_database(database, tmp_path / "dumps", old=old)
    read = collect(dumps, tmp_path / "read", start=start, pages=pages)
    assert tables(read) == tables(crawled)
    assert read.rows("pages") == min(pages, len(LINKS))
