"""Downloads against a server that breaks off, lies, redirects and refuses."""

import io
import json
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from loopback import Site, serving

from unalike import UserError
from unalike.datasets import fetch as fetching
from unalike.datasets import remote
from unalike.datasets.fetch import fetch_file, remove_archives
from unalike.datasets.remote import Checksum, RemoteFile

BODY = bytes(range(256)) * 4000
NOW = (0.0, 0.0)


@pytest.fixture
def site():
    with serving() as site:
        yield site


def fetch(root: Path, *mirrors: str, path: str = "folder/file.bin"):
    return fetch_file(RemoteFile(path, mirrors), root, waits=NOW)


@pytest.fixture
def known(monkeypatch):
    """Make a checksum one that ships with unalike."""

    def know(body: bytes, path: str = "folder/file.bin") -> None:
        told = {path: Checksum(len(body), sha256(body).hexdigest())}
        monkeypatch.setattr(remote, "shipped_checksums", lambda: told, raising=True)

    return know


def left_over(root: Path) -> list[str]:
    """Everything in a folder but locks."""
    files = (path for path in root.rglob("*") if path.is_file())
    return sorted(path.name for path in files if not path.name.endswith(".lock"))


def test_a_file_comes_whole_and_its_hash_is_noted(tmp_path: Path, site: Site):
    got = fetch(tmp_path, site.put("/file", BODY))
    assert got.place.read_bytes() == BODY
    assert (got.downloaded, got.known) == (True, False)
    noted = json.loads((tmp_path / "hashes.json").read_text())
    assert noted["folder/file.bin"]["sha256"] == sha256(BODY).hexdigest()
    assert left_over(tmp_path) == ["file.bin", "hashes.json"]


def test_a_second_fetch_asks_nobody(tmp_path: Path, site: Site):
    address = site.put("/file", BODY)
    fetch(tmp_path, address)
    again = fetch(tmp_path, address)
    assert (again.downloaded, again.known) == (False, True)
    assert len(site.asked) == 1


def test_a_broken_download_goes_on_where_it_ended(tmp_path: Path, site: Site):
    address = site.put("/file", BODY, breaks=[300_000, 400_000])
    assert fetch(tmp_path, address).place.read_bytes() == BODY
    starts = [int(span[6:-1]) for _, span in site.asked if span]
    assert len(starts) == 2
    assert 0 < starts[0] <= 300_000 < starts[1]


def test_a_later_run_goes_on_too(tmp_path: Path, site: Site):
    address = site.put("/file", BODY, breaks=[500_000, 0, 0, 0])
    with pytest.raises(UserError, match="broke off after 500000 of 1024000 bytes"):
        fetch(tmp_path, address)
    assert left_over(tmp_path) == [".file.bin.part", ".file.bin.part.json"]
    site.asked.clear()
    assert fetch(tmp_path, address).place.read_bytes() == BODY
    assert site.asked == [("/file", "bytes=500000-")]


def test_another_version_is_not_glued_to_the_old_one(tmp_path: Path, site: Site):
    address = site.put("/file", BODY, breaks=[500_000, 0, 0, 0])
    with pytest.raises(UserError):
        fetch(tmp_path, address)
    site.put("/file", BODY[::-1], tag='"two"')
    assert fetch(tmp_path, address).place.read_bytes() == BODY[::-1]


def test_without_a_version_or_hash_it_begins_anew(tmp_path: Path, site: Site):
    address = site.put("/file", BODY, tag=None, breaks=[500_000])
    assert fetch(tmp_path, address).place.read_bytes() == BODY
    assert [span for _, span in site.asked] == [None, None]


def test_a_server_may_ignore_ranges(tmp_path: Path, site: Site):
    address = site.put("/file", BODY, ignores_range=True, breaks=[500_000])
    assert fetch(tmp_path, address).place.read_bytes() == BODY


def test_a_part_that_is_whole_needs_no_more_bytes(tmp_path: Path, site: Site):
    part = tmp_path / "folder" / ".file.bin.part"
    part.parent.mkdir()
    part.write_bytes(BODY)
    address = site.put("/file", BODY)
    note = {"address": address, "version": '"one"'}
    part.with_name(".file.bin.part.json").write_text(json.dumps(note))
    assert fetch(tmp_path, address).place.read_bytes() == BODY


def test_a_part_that_is_too_long_is_thrown_away(tmp_path: Path, site: Site):
    part = tmp_path / "folder" / ".file.bin.part"
    part.parent.mkdir()
    part.write_bytes(BODY + b"more")
    address = site.put("/file", BODY)
    note = {"address": address, "version": '"one"'}
    part.with_name(".file.bin.part.json").write_text(json.dumps(note))
    assert fetch(tmp_path, address).place.read_bytes() == BODY


def test_a_wrong_part_under_a_known_hash_is_found_out(
    tmp_path: Path, site: Site, known
):
    known(BODY)
    part = tmp_path / "folder" / ".file.bin.part"
    part.parent.mkdir()
    part.write_bytes(b"x" * 1000)
    address = site.put("/file", BODY)
    note = {"address": address, "version": '"one"'}
    part.with_name(".file.bin.part.json").write_text(json.dumps(note))
    assert fetch(tmp_path, address).place.read_bytes() == BODY


def test_a_length_that_is_too_long_is_a_break(tmp_path: Path, site: Site):
    address = site.put("/file", BODY, length=len(BODY) + 5, ignores_range=True)
    with pytest.raises(UserError, match="broke off"):
        fetch(tmp_path, address)
    assert not (tmp_path / "folder" / "file.bin").exists()


def test_a_length_that_is_not_the_known_one_is_refused(
    tmp_path: Path, site: Site, known
):
    known(BODY)
    short = site.put("/short", BODY, length=1000)
    whole = site.put("/whole", BODY)
    assert fetch(tmp_path, short, whole).place.read_bytes() == BODY


def test_redirects_are_followed(tmp_path: Path, site: Site):
    site.put("/file", BODY)
    address = site.put("/old", b"", redirect="/file")
    assert fetch(tmp_path, address).place.read_bytes() == BODY


def test_a_circle_of_redirects_is_refused(tmp_path: Path, site: Site):
    address = site.put("/old", b"", redirect="/old")
    with pytest.raises(UserError, match=r"file\.bin"):
        fetch(tmp_path, address)


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/zip"])
def test_a_web_page_is_not_the_file(tmp_path: Path, site: Site, kind: str):
    page = b"<!DOCTYPE html><html><title>Quota exceeded</title></html>"
    address = site.put("/file", page, kind=kind)
    with pytest.raises(UserError, match="web page instead of the file"):
        fetch(tmp_path, address)
    assert left_over(tmp_path) == []


def test_the_page_that_asks_once_more_is_answered(tmp_path: Path, site: Site):
    page = b"""<!DOCTYPE html><html><body><form id="download-form"
      action="/really" method="get"><input type="submit" value="Download anyway"/>
      <input type="hidden" name="id" value="abc"><input type="hidden" name="confirm"
      value="t"></form></body></html>"""
    address = site.put("/uc?id=abc", page, kind="text/html")
    site.put("/really?id=abc&confirm=t", BODY, breaks=[500_000])
    assert fetch(tmp_path, address).place.read_bytes() == BODY


def test_a_missing_file_leads_to_the_next_mirror(tmp_path: Path, site: Site):
    second = site.put("/file", BODY)
    got = fetch(tmp_path, f"{site.address}/gone", second)
    assert got.place.read_bytes() == BODY
    assert [path for path, _ in site.asked] == ["/gone", "/file"]


def test_a_busy_server_is_asked_again(tmp_path: Path, site: Site):
    address = site.put("/file", BODY, statuses=[503, 500])
    assert fetch(tmp_path, address).place.read_bytes() == BODY


def test_a_server_that_stays_busy_is_given_up(tmp_path: Path, site: Site):
    address = site.put("/file", BODY, statuses=[503] * 9)
    with pytest.raises(UserError, match="503"):
        fetch(tmp_path, address)
    assert len(site.asked) == 1 + len(NOW)


def test_a_wrong_hash_never_takes_the_name(tmp_path: Path, site: Site, known):
    known(BODY)
    lie = bytes(len(BODY))
    with pytest.raises(UserError, match="sha256 differs"):
        fetch(tmp_path, site.put("/file", lie))
    assert left_over(tmp_path) == []


def test_a_hash_seen_before_is_held_against_the_next_file(tmp_path: Path, site: Site):
    place = fetch(tmp_path, site.put("/file", BODY)).place
    place.unlink()
    with pytest.raises(UserError, match="sha256 differs"):
        fetch(tmp_path, site.put("/file", BODY[::-1]))


def test_a_file_that_changed_on_disk_is_named(tmp_path: Path, site: Site):
    address = site.put("/file", BODY)
    fetch(tmp_path, address).place.write_bytes(b"other")
    with pytest.raises(UserError, match="remove it to fetch it again"):
        fetch(tmp_path, address)


def test_without_network_one_line_says_what_to_do(tmp_path: Path):
    address = "http://127.0.0.1:9/never"
    with pytest.raises(UserError) as told:
        fetch(tmp_path, address)
    target = tmp_path / "folder" / "file.bin"
    assert f"Get it from {address} and put it at {target}." in str(told.value)
    assert "\n" not in str(told.value)


def test_a_read_only_folder_is_not_touched(tmp_path: Path, site: Site):
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o555)
    with pytest.raises(UserError, match="read-only"):
        fetch(tmp_path, site.put("/file", BODY))
    assert list(folder.iterdir()) == site.asked == []


def test_other_protocols_are_refused(tmp_path: Path):
    with pytest.raises(UserError, match="not a web address"):
        fetch(tmp_path, (tmp_path / "file").as_uri())


def test_a_file_inside_an_archive(tmp_path: Path, site: Site):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inner/one.csv", "1\n")
        archive.writestr("inner/two.csv", "2\n")
    address = site.put("/all.zip", packed.getvalue())
    files = [
        RemoteFile(f"{name}.csv", (f"{address}#inner/{name}.csv",))
        for name in ("one", "two")
    ]
    got = [fetch_file(file, tmp_path, waits=NOW) for file in files]
    assert [file.place.read_text() for file in got] == ["1\n", "2\n"]
    assert len(site.asked) == 1
    remove_archives(files, tmp_path)
    assert left_over(tmp_path) == ["hashes.json", "one.csv", "two.csv"]


@pytest.mark.parametrize("body", [b"no archive", b"PK\x03\x04"])
def test_a_damaged_archive_is_refused(tmp_path: Path, site: Site, body: bytes):
    address = site.put("/all.zip", body)
    with pytest.raises(UserError, match="archive is damaged"):
        fetch(tmp_path, f"{address}#inner/one.csv")
    assert left_over(tmp_path) == []


def test_a_full_disk_is_told_as_such(tmp_path: Path, site: Site, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fetching, "download", full)
    with pytest.raises(UserError, match=r"Cannot write .*No space left"):
        fetch(tmp_path, site.put("/file", BODY))
