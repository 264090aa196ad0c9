"""Servers that break off, lie about lengths or send other bytes: no wrong file."""

import shutil
from hashlib import sha256

import pytest
from damage import damage
from loopback import serving

from unalike import UserError
from unalike.datasets import remote
from unalike.datasets.fetch import fetch_file
from unalike.datasets.remote import Checksum, RemoteFile

BODY = bytes(range(256)) * 64
FILE = "folder/file.bin"


def lie(rng, *, same_bytes: bool) -> tuple[bytes, dict]:
    """A body and the faults of its page; without a hash the bytes must be right."""
    faults = {
        "breaks": [rng.randrange(len(BODY)) for _ in range(rng.randrange(6))],
        "statuses": [rng.choice([500, 503, 429, 404, 204, 301, 416])]
        * rng.randrange(3),
        "ignores_range": rng.random() < 0.3,
        "tag": rng.choice([None, '"one"']),
        "kind": rng.choice(["application/octet-stream", "text/html"]),
    }
    if rng.random() < 0.3:
        faults["length"] = len(BODY) + rng.randrange(1, 99)
    body = BODY if same_bytes or rng.random() < 0.5 else damage(BODY, rng)
    return body, faults


@pytest.mark.parametrize("known", [True, False])
def test_a_fetched_file_has_the_right_bytes(tmp_path, some, known, monkeypatch):
    checksums = {FILE: Checksum(len(BODY), sha256(BODY).hexdigest())} if known else {}
    monkeypatch.setattr(remote, "shipped_checksums", lambda: checksums)
    root = tmp_path / "data"
    with serving() as site:
        for rng in some:
            body, faults = lie(rng, same_bytes=not known)
            file = RemoteFile(FILE, (site.put("/file", body, **faults),))
            try:
                fetched = fetch_file(file, root, backoff=(0.0, 0.0))
                assert fetched.path.read_bytes() == BODY
            except UserError as error:
                assert "\n" not in str(error)
                assert not (root / FILE).exists()
            shutil.rmtree(root, ignore_errors=True)
