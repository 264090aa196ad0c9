"""What is wrong with dump files is told in one line."""

import errno
import gzip

import dump_files
import pytest

from unalike import UserError
from unalike.wiki.dumps import collect

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


def test_no_folder(tmp_path):
    fails(tmp_path / "nothing", "no folder .*nothing")


@pytest.mark.parametrize("name", ["page", "redirect", "pagelinks", "linktarget"])
def test_a_missing_table(dumps, name):
    (dumps / f"{PREFIX}-{name}.sql.gz").unlink()
    fails(dumps, rf"\*-{name}\.sql\.gz")


def test_two_tables_of_one_name(dumps):
    (dumps / f"{PREFIX}-page.sql").write_bytes(b"")
    fails(dumps, "two tables page: .*page.sql and .*page.sql.gz")


@pytest.mark.parametrize("other", ["otherwiki-20240101", "testwiki-20240201"])
def test_a_table_of_another_wiki_or_date(dumps, other):
    path = dumps / f"{PREFIX}-redirect.sql.gz"
    path.rename(dumps / f"{other}-redirect.sql.gz")
    fails(
        dumps, f"{other}-redirect.sql.gz and {PREFIX}-page.sql.gz are not of the same"
    )


@pytest.mark.parametrize("name", ["page", "redirect", "linktarget", "pagelinks"])
def test_a_file_that_ends_too_early(dumps, name):
    path = dumps / f"{PREFIX}-{name}.sql.gz"
    path.write_bytes(path.read_bytes()[:-40])
    fails(dumps, f"{name}.sql.gz is damaged: it ends too early")


def test_a_file_that_is_not_packed(dumps):
    (dumps / f"{PREFIX}-page.sql.gz").write_bytes(b"<html>404 Not Found</html>")
    fails(dumps, "page.sql.gz is damaged: .*incorrect header")


def test_a_table_that_ends_within_a_row(dumps):
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
def test_a_table_without_a_column(dumps, name, column):
    rewrite(dumps, name, lambda text: text.replace(column, b"strange"))
    fails(dumps, f"table {name} has no column {column.decode()}; it has .*strange")


def test_another_table_in_the_file(dumps):
    rewrite(dumps, "page", lambda text: text.replace(b"`page`", b"`pages`"))
    fails(dumps, "does not begin with CREATE TABLE `page`")


@pytest.mark.parametrize(
    ("found", "instead"),
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
def test_a_row_of_another_form(dumps, found, instead):
    rewrite(dumps, "page", lambda text: text.replace(found, instead))
    fails(dumps, "page.sql.gz, unpacked byte .* no row of the 12 columns of page")


@pytest.mark.parametrize("instead", [b"(10,0,'A'", b"(3,0,'B'"])
def test_a_page_twice(dumps, instead):
    rewrite(dumps, "page", lambda text: text.replace(b"(10,0,'B'", instead))
    fails(dumps, "page.sql.gz is damaged: it has a page twice")


def test_an_id_that_cannot_be(dumps):
    rewrite(dumps, "page", lambda text: text.replace(b"(10,0,", b"(99999999999,0,"))
    fails(dumps, "page.sql.gz is damaged: it has ids beyond")


def test_no_articles(tmp_path):
    fails(
        dump_files.write({"A": "A"}, tmp_path / "dumps"), "page.sql.gz has no article"
    )


def test_views_of_a_wiki_that_has_none(tmp_path):
    dumps = dump_files.write(WIKI, tmp_path / "dumps", prefix="mine-20240101")
    dump_files.write_views({"A": 1}, dumps / "pageviews-202401-user", codes=["mine"])
    fails(dumps, "No views are known for a wiki called mine")


def test_a_start_that_is_no_page(dumps):
    fails(dumps, "There is no page 'Nobody'", start="Nobody", pages=1)


def test_a_start_that_leads_nowhere(tmp_path):
    dumps = dump_files.write({"A": [], "B": "B"}, tmp_path / "dumps")
    fails(dumps, "'B' is a redirect that leads to no article", start="B", pages=1)


@pytest.mark.parametrize("options", [{"pages": 1}, {"start": "A", "pages": 0}])
def test_pages_and_start_belong_together(dumps, options):
    fails(dumps, "belong together", **options)


def test_a_folder_that_is_another_collection(dumps, tmp_path):
    collect(dumps, tmp_path / "out")
    with pytest.raises(UserError, match="other dumps or pages"):
        collect(dumps, tmp_path / "out", start="A", pages=1)


def test_a_full_disk(dumps, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("numpy.save", full)
    fails(dumps, r"Cannot write .*\.out\.dumps: No space left on device\.")
