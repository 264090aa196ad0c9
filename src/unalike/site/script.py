"""JSON documents as scripts, which a page can load from a disk."""

from __future__ import annotations

import json

from unalike.site.cell import Document


def as_script(name: str, document: Document) -> str:
    """A call that passes the document to the page.

    A page that was opened from a disk can load scripts but no other files. The script
    holds no `<`, so that it could stand inside a page as well.
    """
    payload = json.dumps([name, document], separators=(",", ":"))
    return f"receive(...{payload});\n".replace("<", "\\u003c")
