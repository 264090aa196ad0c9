"""Confirm: Google Drive's page about large files, and the address behind its button."""

from html.parser import HTMLParser
from urllib.parse import urlencode, urljoin


class _Forms(HTMLParser):
    """Collects the download form of a page: its address and its hidden fields."""

    def __init__(self) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: dict[str, str] = {}
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {key: value or "" for key, value in attrs}
        if tag == "form":
            self.inside = told.get("id") == "download-form"
            self.action = told.get("action") if self.inside else self.action
        elif tag == "input" and self.inside and told.get("name"):
            self.fields[told["name"]] = told.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "form"


def confirmed_address(page: bytes, address: str) -> str | None:
    """Where Google Drive's page about large files leads, if this is that page."""
    forms = _Forms()
    forms.feed(page.decode("utf-8", "replace"))
    if not forms.action:
        return None
    return f"{urljoin(address, forms.action)}?{urlencode(forms.fields)}"
