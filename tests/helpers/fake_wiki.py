"""A fake MediaWiki with its API responses, and the expected result of a crawl."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wiki_proxy import Form, daily_views, total_views


def normal(title: str) -> str:
    title = title.replace("_", " ").strip()
    return title[:1].upper() + title[1:]


@dataclass(frozen=True)
class FakeWiki:
    """Articles with the titles they link, and redirects."""

    articles: dict[str, list[str]]
    redirects: dict[str, str] = field(default_factory=dict)
    extras: tuple[str, ...] = ("extracts", "pageviews")
    limits: tuple[int, int, int] = (500, 20, 7)
    """Maximum links, extracts and views in a response."""

    def page_id(self, title: str) -> int:
        return 3 * sorted({*self.articles, *self.redirects}).index(title) + 1

    def intro(self, title: str) -> str:
        return f"{title} is an article.\nIt links {len(self.articles[title])} titles."

    def __call__(self, form: Form) -> dict[str, Any]:
        return {"paraminfo": self.paraminfo, "query": self.query}[form["action"]](form)

    def paraminfo(self, form: Form) -> dict[str, Any]:
        return {"paraminfo": {"modules": [{"name": name} for name in self.extras]}}

    def query(self, form: Form) -> dict[str, Any]:
        if "meta" in form:
            general = {"sitename": "Fake", "generator": "Fake 1", "lang": "en"}
            rights = {"text": "CC BY-SA 4.0", "url": "https://example.org"}
            return {"query": {"general": general, "rightsinfo": rights}}
        requested = form["titles"].split("|")
        assert len(requested) <= 50
        query: dict[str, Any] = {"pages": []}
        query["normalized"] = [
            {"from": title, "to": normal(title)}
            for title in requested
            if title != normal(title)
        ]
        titles = dict.fromkeys(map(normal, requested))
        query["redirects"] = self.follow(titles)
        articles = [title for title in titles if title in self.articles]
        pages = {
            title: {"pageid": self.page_id(title), "ns": 0, "title": title}
            for title in sorted(articles, key=self.page_id)
        }
        query["pages"] = [
            {"ns": 0, "title": title, "missing": True}
            for title in titles
            if title not in self.articles
        ] + list(pages.values())
        return {"query": query, **self.properties(form, pages)}

    def follow(self, titles: dict[str, None]) -> list[dict[str, str]]:
        """Replace redirects by their targets, over any number of steps."""
        steps: dict[str, str] = {}
        while ahead := [title for title in titles if title in self.redirects]:
            for title in ahead:
                del titles[title]
                steps[title] = self.redirects[title]
                if self.redirects[title] not in steps:
                    titles[self.redirects[title]] = None
        return [{"from": title, "to": target} for title, target in steps.items()]

    def properties(self, form: Form, pages: dict[str, Any]) -> dict[str, Any]:
        """Add the requested properties to pages; returns the continuation."""
        done = form.get("continue", "").partition("||")[2].split("|")
        wanted = [prop for prop in form.get("prop", "").split("|") if prop]
        items = {
            "links": [
                (t, {"ns": 0, "title": x}) for t in pages for x in self.linked(t)
            ],
            "extracts": [(title, self.intro(title)) for title in pages],
            "pageviews": [(t, daily_views(self.page_id(t))) for t in pages],
        }
        tokens = {"links": "plcontinue", "extracts": "excontinue"}
        continuation, finished = {}, []
        for prop, limit in zip(items, self.limits, strict=True):
            if prop not in wanted or prop in done:
                finished += [prop] if prop in done else []
                continue
            token = tokens.get(prop, "pvipcontinue")
            first = int(form.get(token, "0"))
            for title, value in items[prop][first : first + limit]:
                if prop == "links":
                    pages[title].setdefault("links", []).append(value)
                else:
                    pages[title][{"extracts": "extract"}.get(prop, prop)] = value
            if first + limit < len(items[prop]):
                continuation[token] = str(first + limit)
            else:
                finished.append(prop)
        if not continuation:
            return {"batchcomplete": True}
        return {"continue": {**continuation, "continue": "-||" + "|".join(finished)}}

    def linked(self, title: str) -> list[str]:
        """Titles that an article links, sorted, without itself."""
        return sorted({normal(link) for link in self.articles[title]} - {title})

    def article_of(self, title: str) -> str | None:
        """The article of a title after redirects, or None."""
        visited: set[str] = set()
        while title in self.redirects and title not in visited:
            visited.add(title)
            title = self.redirects[title]
        return title if title in self.articles else None

    def reached(self, start: str, wanted: int) -> list[str]:
        """The articles that a breadth-first crawl reads, in its order."""
        queue, order = [start], []
        for title in queue:
            article = self.article_of(normal(title))
            if article is None or article in order:
                continue
            if len(order) == wanted:
                break
            order.append(article)
            queue += [link for link in self.linked(article) if link not in queue]
        return order

    def expected(self, start: str, wanted: int) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of every table of the collection."""
        reached = self.reached(start, wanted)
        ids = {title: self.page_id(title) for title in reached}
        links = {(title, link) for title in reached for link in self.linked(title)}
        named = {link for _, link in links} | {normal(start)}
        pairs = {(ids[title], ids.get(self.article_of(link))) for title, link in links}
        texts, views = "extracts" in self.extras, "pageviews" in self.extras
        return {
            "pages": sorted(
                (
                    page_id,
                    title,
                    self.intro(title) if texts else "",
                    total_views(page_id) if views else None,
                )
                for title, page_id in ids.items()
            ),
            "links": sorted(
                pair for pair in pairs if pair[1] is not None and pair[0] != pair[1]
            ),
            "aliases": sorted(
                (title, ids[self.article_of(title)])
                for title in named
                if title in self.redirects and self.article_of(title) in ids
            ),
            "missing": sorted(
                (title,)
                for title in named
                if title not in self.articles and title not in self.redirects
            ),
        }
