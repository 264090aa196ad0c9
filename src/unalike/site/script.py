"""Script: a document as a file that a page can load from a disk."""

from __future__ import annotations

import json

from unalike.site.cell import Document


def script(name: str, document: Document) -> str:
    """A call that hands the document to the page under a name.

    A page that was opened from a disk may load scripts but no other files. The
    result holds no `<`, so that it could stand inside a page as well.
    """
    told = json.dumps([name, document], separators=(",", ":"))
    return f"receive(...{told});\n".replace("<", "\\u003c")
