"""The server of a report: what it answers, to whom, and when it looks again."""

import json
import socket
import threading
from http.client import HTTPConnection

import pytest
from report_fixtures import only_our_table, runs, store_some

from unalike.errors import UserError
from unalike.experiments.database import ResultsDatabase
from unalike.http_server import is_loopback
from unalike.reports.site.server import LiveSite, ReportServer
from unalike.reports.site.site_data import SiteData


@pytest.fixture
def results(tmp_path):
    url = f"sqlite:///{tmp_path / 'results.db'}"
    store_some(url)
    with ResultsDatabase.open(url) as kept:
        yield kept


@pytest.fixture
def site(results, monkeypatch):
    only_our_table(monkeypatch)
    with ReportServer(LiveSite(SiteData(results)), "127.0.0.1", 0) as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.05,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def ask(site, path, **headers):
    """A status, its headers and its body."""
    line = HTTPConnection(*site.server_address)
    line.request("GET", path, headers=headers)
    found = line.getresponse()
    output = (found.status, dict(found.headers), found.read())
    line.close()
    return output


def test_the_page_its_assets_and_its_data_are_served(site):
    assert ask(site, "/")[2].startswith(b"<!doctype html>")
    status, headers, _ = ask(site, "/assets/style.css")
    assert (status, headers["Content-Type"]) == (200, "text/css; charset=utf-8")
    assert ask(site, "/data/site.js?any")[2].startswith(b"receive(")
    document = next(iter(site.live.site_data.method_run_ids()))
    assert ask(site, f"/data/{document}.js")[0] == 200
    assert ask(site, "/data/charts.js")[2].startswith(b"receive(")
    assert b"vegaEmbed" in ask(site, "/assets/vega.js")[2]


@pytest.mark.parametrize(
    "path",
    ["/data/none.js", "/../live.py", "/assets/../../live.py", "/%2e%2e/live.py"],
)
def test_nothing_else_is(site, path):
    assert ask(site, path)[0] == 404


def test_other_sites_may_not_look_into_it(site):
    for name in ("evil.example", "evil.example:80", "", "127.0.0.1.evil.example"):
        assert ask(site, "/data/site.js", Host=name)[0] == 421
    for name in ("localhost:1", "127.0.0.1", "[::1]:8000"):
        assert ask(site, "/data/site.js", Host=name)[0] == 200
    _, headers, _ = ask(site, "/data/site.js")
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Frame-Options"] == "DENY"


def test_a_host_that_cannot_be_parsed_is_refused(site, capsys):
    assert ask(site, "/", Host="[")[0] == 421
    assert capsys.readouterr().err == ""


def test_a_connection_without_a_request_is_closed(site, monkeypatch):
    monkeypatch.setattr("unalike.http_server.REQUEST_SECONDS", 0.05)
    with socket.create_connection(site.server_address) as line:
        line.sendall(b"GET / HTTP/1.1\r\n")
        assert line.recv(1) == b""


def test_what_has_not_changed_is_not_sent_again(site):
    _, headers, body = ask(site, "/data/state.json")
    again = {"If-None-Match": headers["ETag"]}
    assert ask(site, "/data/state.json", **again)[::2] == (304, b"")
    site.live.site_data.results.store(runs("cornell", "sgc", 50.0, 99.0, hops=1))
    status, _, later = ask(site, "/data/state.json", **again)
    assert status == 200
    before, after = json.loads(body), json.loads(later)
    assert (before["runs"], after["runs"]) == (18, 21)
    assert before["token"] != after["token"]


def test_a_port_that_is_taken_is_a_users_mistake(site, results):
    with pytest.raises(UserError, match=r"Nothing can be served at 127.0.0.1:\d+: "):
        ReportServer(LiveSite(SiteData(results)), *site.server_address)


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("192.168.1.2", False),
        ("example.org", False),
    ],
)
def test_loopback_addresses_are_recognised(host, inside):
    assert is_loopback(host) == inside
