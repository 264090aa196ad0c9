"""Downloads from a server with broken connections, wrong bodies and error statuses."""

import io
import json
import shutil
import subprocess
import time
import zipfile
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from loopback import Site, serving

from unalike import DATASETS, UserError
from unalike.datasets import fetch as fetch_module
from unalike.datasets import remote
from unalike.datasets.download import google_drive_confirm_url
from unalike.datasets.fetch import fetch_file, record_checksums, remove_archives
from unalike.datasets.remote import Checksum, RemoteFile

BODY = bytes(range(256)) * 4000
NO_BACKOFF = (0.0, 0.0)


@pytest.fixture
def site():
    with serving() as site:
        yield site


def fetch(root: Path, *mirrors: str, path: str = "folder/file.bin"):
    return fetch_file(RemoteFile(path, mirrors), root, backoff=NO_BACKOFF)


@pytest.fixture
def known(monkeypatch):
    """Add a checksum to those that ship with unalike."""

    def add(body: bytes, path: str = "folder/file.bin") -> None:
        checksums = {path: Checksum(len(body), sha256(body).hexdigest())}
        monkeypatch.setattr(remote, "shipped_checksums", lambda: checksums)

    return add


def remaining_files(root: Path) -> list[str]:
    """All files of a folder except locks."""
    files = (path for path in root.rglob("*") if path.is_file())
    return sorted(path.name for path in files if not path.name.endswith(".lock"))


def fetch_and_accept(root: Path, url: str):
    """Fetch a file, and record its checksum as after its reader has accepted it."""
    fetched = fetch(root, url)
    record_checksums(root, [fetched])
    return fetched


def test_the_sha256_of_a_file_is_recorded_once_it_is_accepted(
    tmp_path: Path, site: Site
):
    fetched = fetch(tmp_path, site.put("/file", BODY))
    assert not (tmp_path / "hashes.json").exists()
    record_checksums(tmp_path, [fetched])
    assert fetched.path.read_bytes() == BODY
    assert (fetched.downloaded, fetched.known) == (True, False)
    recorded = json.loads((tmp_path / "hashes.json").read_text())
    assert recorded["folder/file.bin"]["sha256"] == sha256(BODY).hexdigest()
    assert remaining_files(tmp_path) == ["file.bin", "hashes.json"]


def test_a_second_fetch_sends_no_request(tmp_path: Path, site: Site):
    url = site.put("/file", BODY)
    fetch_and_accept(tmp_path, url)
    again = fetch(tmp_path, url)
    assert (again.downloaded, again.known) == (False, True)
    assert len(site.asked) == 1


def test_a_broken_download_is_resumed(tmp_path: Path, site: Site):
    url = site.put("/file", BODY, breaks=[300_000, 400_000])
    assert fetch(tmp_path, url).path.read_bytes() == BODY
    starts = [int(span[6:-1]) for _, span in site.asked if span]
    assert len(starts) == 2
    assert 0 < starts[0] <= 300_000 < starts[1]


def test_a_later_call_resumes_the_download(tmp_path: Path, site: Site):
    url = site.put("/file", BODY, breaks=[500_000, 0, 0, 0])
    with pytest.raises(UserError, match="broke off after 500000 of 1024000 bytes"):
        fetch(tmp_path, url)
    assert remaining_files(tmp_path) == [".file.bin.part", ".file.bin.part.json"]
    site.asked.clear()
    assert fetch(tmp_path, url).path.read_bytes() == BODY
    assert site.asked == [("/file", "bytes=500000-")]


def test_another_version_of_the_file_is_downloaded_from_the_start(
    tmp_path: Path, site: Site
):
    url = site.put("/file", BODY, breaks=[500_000, 0, 0, 0])
    with pytest.raises(UserError):
        fetch(tmp_path, url)
    site.put("/file", BODY[::-1], tag='"two"')
    assert fetch(tmp_path, url).path.read_bytes() == BODY[::-1]


def test_without_version_or_checksum_the_download_restarts(tmp_path: Path, site: Site):
    url = site.put("/file", BODY, tag=None, breaks=[500_000])
    assert fetch(tmp_path, url).path.read_bytes() == BODY
    assert [span for _, span in site.asked] == [None, None]


def test_a_server_may_ignore_range_requests(tmp_path: Path, site: Site):
    url = site.put("/file", BODY, ignores_range=True, breaks=[500_000])
    assert fetch(tmp_path, url).path.read_bytes() == BODY


def test_a_complete_partial_file_is_used(tmp_path: Path, site: Site):
    part = tmp_path / "folder" / ".file.bin.part"
    part.parent.mkdir()
    part.write_bytes(BODY)
    url = site.put("/file", BODY)
    metadata = {"address": url, "version": '"one"'}
    part.with_name(".file.bin.part.json").write_text(json.dumps(metadata))
    assert fetch(tmp_path, url).path.read_bytes() == BODY


def test_a_partial_file_that_is_too_long_is_discarded(tmp_path: Path, site: Site):
    part = tmp_path / "folder" / ".file.bin.part"
    part.parent.mkdir()
    part.write_bytes(BODY + b"more")
    url = site.put("/file", BODY)
    metadata = {"address": url, "version": '"one"'}
    part.with_name(".file.bin.part.json").write_text(json.dumps(metadata))
    assert fetch(tmp_path, url).path.read_bytes() == BODY


def test_a_wrong_partial_file_is_detected_by_its_checksum(
    tmp_path: Path, site: Site, known
):
    known(BODY)
    part = tmp_path / "folder" / ".file.bin.part"
    part.parent.mkdir()
    part.write_bytes(b"x" * 1000)
    url = site.put("/file", BODY)
    metadata = {"address": url, "version": '"one"'}
    part.with_name(".file.bin.part.json").write_text(json.dumps(metadata))
    assert fetch(tmp_path, url).path.read_bytes() == BODY


def test_a_body_shorter_than_its_content_length_is_incomplete(
    tmp_path: Path, site: Site
):
    url = site.put("/file", BODY, length=len(BODY) + 5, ignores_range=True)
    with pytest.raises(UserError, match="broke off"):
        fetch(tmp_path, url)
    assert not (tmp_path / "folder" / "file.bin").exists()


def test_a_mirror_with_another_content_length_is_skipped(
    tmp_path: Path, site: Site, known
):
    known(BODY)
    short = site.put("/short", BODY, length=1000)
    whole = site.put("/whole", BODY)
    assert fetch(tmp_path, short, whole).path.read_bytes() == BODY


def test_redirects_are_followed(tmp_path: Path, site: Site):
    site.put("/file", BODY)
    url = site.put("/old", b"", redirect="/file")
    assert fetch(tmp_path, url).path.read_bytes() == BODY


def test_a_redirect_loop_is_an_error(tmp_path: Path, site: Site):
    url = site.put("/old", b"", redirect="/old")
    with pytest.raises(UserError, match=r"file\.bin"):
        fetch(tmp_path, url)


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch) -> Path:
    """A key with a certificate for localhost, which this process trusts."""
    if not (openssl := shutil.which("openssl")):
        pytest.skip("needs openssl")
    path = tmp_path / "localhost.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(path), "-out", str(tmp_path / "certificate.pem")]
    subprocess.run([openssl, *words, *names, *files], check=True, capture_output=True)
    path.write_text(path.read_text() + (tmp_path / "certificate.pem").read_text())
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return path


def test_a_redirect_from_https_to_http_is_refused(
    tmp_path: Path, site: Site, certificate: Path
):
    plain = site.put("/file", BODY)
    with serving(certificate) as secure:
        secure.put("/file", BODY)
        within = secure.put("/within", b"", redirect="/file")
        downgraded = secure.put("/old", b"", redirect=plain)
        assert fetch(tmp_path / "one", within).path.read_bytes() == BODY
        with pytest.raises(UserError, match="it redirects from https to http"):
            fetch(tmp_path / "two", downgraded)
    assert site.asked == []


def test_a_mirror_over_https_is_tried_first(
    tmp_path: Path, site: Site, certificate: Path
):
    plain = site.put("/file", BODY)
    with serving(certificate) as secure:
        fetched = fetch(tmp_path / "root", plain, secure.put("/file", BODY[::-1]))
    assert fetched.path.read_bytes() == BODY[::-1]
    assert site.asked == []


def test_all_datasets_are_fetched_over_https():
    files = [file for dataset in DATASETS.values() for file in dataset.files]
    urls = [url for file in files for url in file.mirrors]
    assert urls
    assert all(url.startswith("https://") for url in urls)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/file", "file:///etc/hostname"])
def test_a_redirect_to_another_protocol_is_refused(
    tmp_path: Path, site: Site, url: str
):
    with pytest.raises(UserError, match=r"Cannot fetch folder/file\.bin \(127"):
        fetch(tmp_path, site.put("/old", b"", redirect=url))


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/zip"])
def test_an_html_page_is_not_the_file(tmp_path: Path, site: Site, kind: str):
    page = b"<!DOCTYPE html><html><title>Quota exceeded</title></html>"
    url = site.put("/file", page, kind=kind)
    with pytest.raises(UserError, match="web page instead of the file"):
        fetch(tmp_path, url)
    assert remaining_files(tmp_path) == []


def test_the_confirmation_page_of_google_drive_is_followed(tmp_path: Path, site: Site):
    page = b"""<!DOCTYPE html><html><body><form id="download-form"
      action="/really" method="get"><input type="submit" value="Download anyway"/>
      <input type="hidden" name="id" value="abc"><input type="hidden" name="confirm"
      value="t"></form></body></html>"""
    url = site.put("/uc?id=abc", page, kind="text/html")
    site.put("/really?id=abc&confirm=t", BODY, breaks=[500_000])
    assert fetch(tmp_path, url).path.read_bytes() == BODY


@pytest.mark.parametrize("action", ["http://[", "//example.org/file"])
def test_a_form_of_another_host_is_not_followed(
    tmp_path: Path, site: Site, action: str
):
    page = f"<html><form id=download-form action='{action}'></form></html>".encode()
    url = site.put("/uc", page, kind="text/html")
    with pytest.raises(UserError, match="web page instead of the file"):
        fetch(tmp_path, url)


def test_a_form_of_another_server_is_not_followed(tmp_path: Path, site: Site):
    with serving() as other:
        target = other.put("/file?", BODY)
        page = f"<html><form id=download-form action='{target}'></form></html>"
        url = site.put("/uc", page.encode(), kind="text/html")
        with pytest.raises(UserError, match="web page instead of the file"):
            fetch(tmp_path, url)
        assert other.asked == []


def test_a_form_of_google_drive_leads_to_its_other_host():
    page = b"""<form id="download-form" action="ACTION"><input name="id" value="a b">"""
    host = "drive.usercontent.google.com/download"
    followed = {
        scheme: google_drive_confirm_url(
            page.replace(b"ACTION", f"{scheme}://{host}".encode()),
            "https://drive.google.com/uc?id=a",
        )
        for scheme in ("https", "http")
    }
    assert followed == {"https": f"https://{host}?id=a+b", "http": None}


def test_after_404_the_next_mirror_is_used(tmp_path: Path, site: Site):
    second = site.put("/file", BODY)
    fetched = fetch(tmp_path, f"{site.address}/gone", second)
    assert fetched.path.read_bytes() == BODY
    assert [path for path, _ in site.asked] == ["/gone", "/file"]


def test_server_errors_are_retried(tmp_path: Path, site: Site):
    url = site.put("/file", BODY, statuses=[503, 500])
    assert fetch(tmp_path, url).path.read_bytes() == BODY


def test_a_download_waits_for_the_seconds_of_retry_after(tmp_path: Path, site: Site):
    url = site.put("/file", BODY, statuses=[503, 429], retry_after="0.4")
    start = time.monotonic()
    assert fetch(tmp_path, url).path.read_bytes() == BODY
    assert time.monotonic() - start >= 0.8


def test_a_mirror_with_a_long_retry_after_is_skipped(tmp_path: Path, site: Site):
    busy = site.put("/busy", BODY, statuses=[503], retry_after="900")
    with pytest.raises(UserError, match=r"503 .*again in 900 s"):
        fetch(tmp_path, busy)
    busy = site.put("/busy", BODY, statuses=[503], retry_after="900")
    assert fetch(tmp_path, busy, site.put("/file", BODY)).path.read_bytes() == BODY
    assert [path for path, _ in site.asked] == ["/busy", "/busy", "/file"]


def test_a_download_stops_after_the_last_retry(tmp_path: Path, site: Site):
    url = site.put("/file", BODY, statuses=[503] * 9)
    with pytest.raises(UserError, match="503"):
        fetch(tmp_path, url)
    assert len(site.asked) == 1 + len(NO_BACKOFF)


def test_a_file_with_a_wrong_sha256_is_discarded(tmp_path: Path, site: Site, known):
    known(BODY)
    wrong = bytes(len(BODY))
    with pytest.raises(UserError, match="sha256 differs"):
        fetch(tmp_path, site.put("/file", wrong))
    assert remaining_files(tmp_path) == []


def test_a_recorded_sha256_is_compared_with_a_new_download(tmp_path: Path, site: Site):
    path = fetch_and_accept(tmp_path, site.put("/file", BODY)).path
    path.unlink()
    with pytest.raises(UserError, match="sha256 differs"):
        fetch(tmp_path, site.put("/file", BODY[::-1]))


def test_a_file_that_changed_on_disk_is_an_error(tmp_path: Path, site: Site):
    url = site.put("/file", BODY)
    fetch_and_accept(tmp_path, url).path.write_bytes(b"other")
    with pytest.raises(UserError, match="remove it to fetch it again"):
        fetch_and_accept(tmp_path, url)


def test_without_network_the_error_has_the_manual_download(tmp_path: Path):
    url = "http://127.0.0.1:9/never"
    with pytest.raises(UserError) as error:
        fetch(tmp_path, url)
    target = tmp_path / "folder" / "file.bin"
    assert f"Get it from {url} and put it at {target}." in str(error.value)
    assert "\n" not in str(error.value)


def test_a_read_only_folder_is_not_changed(tmp_path: Path, site: Site):
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o555)
    with pytest.raises(UserError, match="read-only"):
        fetch(tmp_path, site.put("/file", BODY))
    assert list(folder.iterdir()) == site.asked == []


def test_other_protocols_are_an_error(tmp_path: Path):
    with pytest.raises(UserError, match="not an HTTP URL"):
        fetch(tmp_path, (tmp_path / "file").as_uri())


def test_a_file_is_extracted_from_a_zip_archive(tmp_path: Path, site: Site):
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("inner/one.csv", "1\n")
        archive.writestr("inner/two.csv", "2\n")
    url = site.put("/all.zip", zipped.getvalue())
    files = [
        RemoteFile(f"{name}.csv", (f"{url}#inner/{name}.csv",))
        for name in ("one", "two")
    ]
    fetched = [fetch_file(file, tmp_path, backoff=NO_BACKOFF) for file in files]
    assert [file.path.read_text() for file in fetched] == ["1\n", "2\n"]
    assert len(site.asked) == 1
    remove_archives(files, tmp_path)
    assert remaining_files(tmp_path) == ["one.csv", "two.csv"]


@pytest.mark.parametrize("body", [b"no archive", b"PK\x03\x04"])
def test_a_damaged_archive_is_an_error(tmp_path: Path, site: Site, body: bytes):
    url = site.put("/all.zip", body)
    with pytest.raises(UserError, match=r"archive is damaged|no \.zip"):
        fetch(tmp_path, f"{url}#inner/one.csv")
    assert remaining_files(tmp_path) == []


def zip_of(body: bytes, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", compression) as archive:
        archive.writestr("one.bin", body)
    return zipped.getvalue()


def test_a_zip_member_of_another_size_is_not_extracted(
    tmp_path: Path, site: Site, known
):
    known(BODY)
    url = site.put("/all.zip", zip_of(BODY + b"more"))
    with pytest.raises(UserError, match="archive is damaged or lacks one"):
        fetch(tmp_path, f"{url}#one.bin")


def test_a_zip_member_that_is_packed_too_tightly_is_not_extracted(
    tmp_path: Path, site: Site
):
    url = site.put("/all.zip", zip_of(bytes(1 << 26)))
    with pytest.raises(UserError, match="67108864 bytes out of 65"):
        fetch(tmp_path, f"{url}#one.bin")
    assert remaining_files(tmp_path) == []


def odd_archives() -> dict[str, bytes]:
    """Archives with an encrypted member, an unknown method and damaged data."""
    plain = zip_of(BODY)
    entry = plain.rindex(b"PK\x01\x02")

    def changed(offset: int, value: int) -> bytes:
        """The archive with one byte of the member's two headers replaced."""
        archive = bytearray(plain)
        archive[6 + offset] = archive[entry + 8 + offset] = value
        return bytes(archive)

    archives = {"encrypted": changed(0, 1), "method": changed(2, 99)}
    for name in ("BZIP2", "LZMA", "DEFLATED"):
        packed = bytearray(zip_of(BODY, getattr(zipfile, f"ZIP_{name}")))
        packed[40:60] = bytes(20)
        archives[name] = bytes(packed)
    return archives


@pytest.mark.parametrize("kind", ["encrypted", "method", "BZIP2", "LZMA", "DEFLATED"])
@pytest.mark.long
def test_after_an_odd_archive_the_next_mirror_is_used(
    tmp_path: Path, site: Site, kind: str
):
    url = site.put("/all.zip", odd_archives()[kind])
    second = site.put("/file", BODY)
    fetched = fetch(tmp_path, f"{url}#one.bin", second)
    assert fetched.path.read_bytes() == BODY
    with pytest.raises(UserError, match="archive is damaged or lacks one"):
        fetch(tmp_path, f"{url}#one.bin", path="other.bin")


def test_a_full_disk_is_an_error(tmp_path: Path, site: Site, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fetch_module, "download", full)
    with pytest.raises(UserError, match=r"Cannot write .*No space left"):
        fetch(tmp_path, site.put("/file", BODY))


def test_a_disk_that_is_full_of_an_archive_is_an_error(
    tmp_path: Path, site: Site, monkeypatch
):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    url = site.put("/all.zip", zip_of(BODY))
    with pytest.raises(UserError, match=r"Cannot write .*file\.bin: No space left"):
        fetch(tmp_path, f"{url}#one.bin")


class LyingHandler(BaseHTTPRequestHandler):
    """Sends one answer, whatever is asked."""

    answer = b""

    def do_GET(self) -> None:
        self.wfile.write(self.answer)

    def log_message(self, *_: object) -> None:
        pass


LIES = {
    "a part that was not asked for": (b"206 Partial\r\nContent-Length: 3", b"abc"),
    "an empty file": (b"200 OK\r\nContent-Length: 0", b""),
    "an empty file without a length": (b"200 OK", b""),
    "no content": (b"204 No Content", b""),
    "a length that is no number": (b"200 OK\r\nContent-Length: three", b"abc"),
    "a coding": (
        b"200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3",
        b"abc",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_without_a_checksum_what_the_protocol_shows_to_be_wrong_is_refused(
    tmp_path: Path, lie: str
):
    head, body = LIES[lie]
    answer = b"HTTP/1.0 " + head + b"\r\n\r\n" + body
    handler = type("Handler", (LyingHandler,), {"answer": answer})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        with pytest.raises(UserError):
            fetch(tmp_path, f"http://127.0.0.1:{server.server_port}/file.bin")
        server.shutdown()
    assert remaining_files(tmp_path) == []


@pytest.mark.parametrize("name", ["a.gz", "a.npy", "a.npz"])
def test_a_file_without_the_magic_number_of_its_suffix_is_refused(
    tmp_path: Path, site: Site, name: str
):
    url = site.put(f"/{name}", BODY)
    with pytest.raises(UserError, match=r"it sends a file that is no \."):
        fetch(tmp_path, url, path=f"folder/{name}")
    assert remaining_files(tmp_path) == []
