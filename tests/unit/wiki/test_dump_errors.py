"""Errors of dump files are one line."""

import errno
import gzip

import dump_files
import pytest

from unalike import UserError
from unalike.wiki.dumps import collect, files

WIKI = {"A": ["B", "C"], "B": ["A"], "C": "B"}
PREFIX = "testwiki-20240101"


@pytest.fixture
def dumps(tmp_path):
    return dump_files.write(WIKI, tmp_path / "dumps")


def fails(dumps, what, **options):
    with pytest.raises(UserError, match=what) as caught:
        collect(dumps, dumps.parent / "out", **options)
    assert "\n" not in str(caught.value)
    assert not (dumps.parent / "out").exists()


def rewrite(dumps, name, change):
    path = dumps / f"{PREFIX}-{name}.sql.gz"
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))


def test_a_missing_folder_is_an_error(tmp_path):
    fails(tmp_path / "nothing", "no folder .*nothing")


@pytest.mark.parametrize("name", ["page", "redirect", "pagelinks", "linktarget"])
def test_a_missing_table_is_an_error(dumps, name):
    (dumps / f"{PREFIX}-{name}.sql.gz").unlink()
    fails(dumps, rf"\*-{name}\.sql\.gz")


def test_two_files_of_one_table_are_an_error(dumps):
    (dumps / f"{PREFIX}-page.sql").write_bytes(b"")
    fails(dumps, "two tables page: .*page.sql and .*page.sql.gz")


@pytest.mark.parametrize("other", ["otherwiki-20240101", "testwiki-20240201"])
def test_a_table_of_another_wiki_or_date_is_an_error(dumps, other):
    path = dumps / f"{PREFIX}-redirect.sql.gz"
    path.rename(dumps / f"{other}-redirect.sql.gz")
    fails(
        dumps, f"{other}-redirect.sql.gz and {PREFIX}-page.sql.gz are not of the same"
    )


@pytest.mark.parametrize("name", ["page", "redirect", "linktarget", "pagelinks"])
def test_a_truncated_file_is_an_error(dumps, name):
    path = dumps / f"{PREFIX}-{name}.sql.gz"
    path.write_bytes(path.read_bytes()[:-40])
    fails(dumps, f"{name}.sql.gz is damaged: Compressed file ended before")


def test_a_file_that_is_not_compressed_is_an_error(dumps):
    (dumps / f"{PREFIX}-page.sql.gz").write_bytes(b"<html>404 Not Found</html>")
    fails(dumps, "page.sql.gz is damaged: Not a gzipped file")


def test_a_table_that_ends_within_a_row_is_an_error(dumps):
    rewrite(dumps, "page", lambda text: text[: text.index(b"),") - 3])
    fails(dumps, "page.sql.gz is damaged: it ends within a row")


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("page", b"page_is_redirect"),
        ("redirect", b"rd_interwiki"),
        ("linktarget", b"lt_title"),
        ("pagelinks", b"pl_target_id"),
    ],
)
def test_a_missing_column_is_an_error(dumps, name, column):
    rewrite(dumps, name, lambda text: text.replace(column, b"strange"))
    fails(dumps, f"table {name} has no column {column.decode()}; it has .*strange")


def test_another_table_in_the_file_is_an_error(dumps):
    rewrite(dumps, "page", lambda text: text.replace(b"`page`", b"`pages`"))
    fails(dumps, "does not begin with CREATE TABLE `page`")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"VALUES (3,0,", b"VALUES (3,"),
        (b"VALUES (3,0,", b"VALUES (3,0,0,"),
        (b"VALUES (3,", b"VALUES ('three',"),
        (b"VALUES (3,", b"VALUES (3.5,"),
        (b"VALUES (3,", b"(page_id) VALUES (3,"),
        (b"VALUES (3,", b"VALUES 3,"),
        (b",'A',", b",65,"),
    ],
)
def test_an_invalid_row_is_an_error(dumps, old, new):
    rewrite(dumps, "page", lambda text: text.replace(old, new))
    fails(dumps, "page.sql.gz, decompressed byte .* no row of the 12 columns of page")


@pytest.mark.parametrize("new", [b"(10,0,'A'", b"(3,0,'B'"])
def test_a_duplicate_page_is_an_error(dumps, new):
    rewrite(dumps, "page", lambda text: text.replace(b"(10,0,'B'", new))
    fails(dumps, "page.sql.gz is damaged: it has a page twice")


def test_an_id_out_of_range_is_an_error(dumps):
    rewrite(dumps, "page", lambda text: text.replace(b"(10,0,", b"(99999999999,0,"))
    fails(dumps, "page.sql.gz is damaged: it has ids beyond")


def test_a_wiki_without_articles_is_an_error(tmp_path):
    fails(
        dump_files.write({"A": "A"}, tmp_path / "dumps"), "page.sql.gz has no article"
    )


def test_views_of_an_unknown_wiki_are_an_error(tmp_path):
    dumps = dump_files.write(WIKI, tmp_path / "dumps", prefix="mine-20240101")
    dump_files.write_views({"A": 1}, dumps / "pageviews-202401-user", codes=["mine"])
    fails(dumps, "No views are known for a wiki called mine")


def test_an_unknown_start_title_is_an_error(dumps):
    fails(dumps, "There is no page 'Nobody'", start="Nobody", pages=1)


def test_a_similar_title_may_be_invalid_utf_8(dumps):
    rewrite(dumps, "page", lambda text: text.replace(b",'A',", b",'Abc\xff',"))
    fails(dumps, "There is no page 'Abcd'.* Did you mean 'Abc\ufffd'", start="Abcd")


def test_a_start_redirect_without_article_is_an_error(tmp_path):
    dumps = dump_files.write({"A": [], "B": "B"}, tmp_path / "dumps")
    fails(dumps, "'B' is a redirect that leads to no article", start="B", pages=1)


@pytest.mark.parametrize("options", [{"pages": 1}, {"start": "A", "pages": 0}])
def test_a_page_limit_needs_a_start_title(dumps, options):
    fails(dumps, "needs a start title", **options)


def test_a_folder_of_another_collection_is_an_error(dumps, tmp_path):
    collect(dumps, tmp_path / "out")
    with pytest.raises(UserError, match="other dumps or pages"):
        collect(dumps, tmp_path / "out", start="A", pages=1)


def test_a_full_disk_is_an_error(dumps, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_npy", full)
    fails(dumps, r"Cannot write .*\.out\.dumps/\w+: No space left on device\.")
