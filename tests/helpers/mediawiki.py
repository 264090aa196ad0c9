"""A real MediaWiki on this machine, for the time of a test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen
from xml.sax.saxutils import escape

HOME = Path("/usr/share/mediawiki")
SETTINGS = """
wfLoadExtension( 'TextExtracts' );
wfLoadExtension( 'ParserFunctions' );
$wgJobRunRate = 0;
$wgRightsText = 'Creative Commons Attribution-ShareAlike';
$wgRightsUrl = 'https://creativecommons.org/licenses/by-sa/4.0/';
"""
NAMESPACES = {"Template": 10, "Talk": 1, "Category": 14}


def lack() -> str | None:
    """Why no MediaWiki can be run here, if so."""
    if not shutil.which("php"):
        return "no php here"
    if not (HOME / "maintenance" / "install.php").exists():
        return f"no MediaWiki in {HOME}"
    found = subprocess.run(["php", "-m"], capture_output=True, text=True, check=True)
    return None if "pdo_sqlite" in found.stdout else "php lacks pdo_sqlite"


@contextmanager
def serving(folder: Path, texts: Mapping[str, str]) -> Iterator[str]:
    """Install a wiki in a folder, fill it, and give the address of its API."""
    port = free_port()
    install(folder, port)
    fill(folder, texts)
    with serve(folder, port) as address:
        yield address


def free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return some.getsockname()[1]


def install(folder: Path, port: int) -> None:
    """Make an empty wiki."""
    maintain(
        *(folder, "install", "--dbtype", "sqlite", "--dbpath", folder / "database"),
        *("--dbname", "wiki", "--server", f"http://127.0.0.1:{port}"),
        *("--scriptpath", "", "--confpath", folder, "--pass", "for-an-hour-only"),
        *("Tested wiki", "Admin"),
    )
    with (folder / "LocalSettings.php").open("a") as settings:
        settings.write(SETTINGS)


def fill(folder: Path, texts: Mapping[str, str]) -> None:
    """Write pages and what follows from them: links, redirects."""
    dump = folder / "pages.xml"
    dump.write_text(as_dump(texts), "utf-8")
    settings = ("--conf", folder / "LocalSettings.php")
    maintain(folder, "importDump", *settings, "--no-updates", dump)
    maintain(folder, "refreshLinks", *settings)


def as_dump(texts: Mapping[str, str]) -> str:
    """Pages as MediaWiki exports them."""
    pages = "".join(
        f"<page><title>{escape(title)}</title><ns>{namespace(title)}</ns>"
        "<revision><timestamp>2026-01-01T00:00:00Z</timestamp>"
        "<contributor><username>Admin</username></contributor>"
        "<model>wikitext</model><format>text/x-wiki</format>"
        f'<text xml:space="preserve">{escape(text)}</text></revision></page>\n'
        for title, text in texts.items()
    )
    opening = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/"'
    return f'{opening} version="0.11" xml:lang="en">\n{pages}</mediawiki>\n'


def namespace(title: str) -> int:
    return NAMESPACES.get(title.partition(":")[0], 0) if ":" in title else 0


def maintain(folder: Path, script: str, *arguments: object) -> str:
    """Run one of MediaWiki's maintenance scripts; gives what it says."""
    path = HOME / "maintenance" / f"{script}.php"
    done = subprocess.run(
        ["php", str(path), *map(str, arguments)],
        env=environment(folder),
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, f"{script}: {done.stdout[-999:]}{done.stderr[-999:]}"
    return done.stdout


def environment(folder: Path) -> dict[str, str]:
    """With the wiki's settings, as soon as it has some."""
    settings = folder / "LocalSettings.php"
    more = {"MW_CONFIG_FILE": str(settings)} if settings.exists() else {}
    return {**os.environ, "PHP_CLI_SERVER_WORKERS": "4", **more}


@contextmanager
def serve(folder: Path, port: int) -> Iterator[str]:
    """Answer requests, from processes that end with the block."""
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            ["php", "-S", f"127.0.0.1:{port}", "-t", str(HOME)],
            env=environment(folder),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}/api.php"
    try:
        until_it_answers(address, server)
        yield address
    finally:
        # The workers are children that would outlive their parent.
        with suppress(ProcessLookupError):
            os.killpg(server.pid, 15)
        server.wait()


def until_it_answers(address: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        with suppress(URLError, ConnectionError), urlopen(address, timeout=60):
            return
        assert server.poll() is None, "php's server ended"
        time.sleep(0.1)
    raise AssertionError("php's server does not answer")
