"""Crew: threads that ask for batches, and one that writes down what they hear."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial

from unalike.errors import UserError
from unalike.progress import Progress
from unalike.wiki.answer import Answer, read_answer
from unalike.wiki.api import Api
from unalike.wiki.state import Batch, State

TITLES = 50
"""Titles in a request: what a wiki allows to everybody."""
LOOK_UP = {"action": "query", "redirects": "1"}


class Crew:
    """The work of a crawl: articles are read, then the titles left over looked up."""

    def __init__(
        self, state: State, api: Api, question: dict[str, str], progress: Progress
    ) -> None:
        self.state = state
        self.api = api
        self.questions = {True: question, False: LOOK_UP}
        self.progress = progress
        self.waiting = deque(state.unfinished())
        self.begun_at = time.monotonic()

    def work(self) -> None:
        """Go on until every article that is wanted is read and every link known."""
        state = self.state
        self.progress.stage("reading", state.wanted, "pages")
        self.progress.advance(state.num_pages, self._note())
        self._all(reads=True)
        self.progress.stage("looking up links", state.queue, "titles")
        self._all(reads=False)

    def _all(self, *, reads: bool) -> None:
        at_once = self.api.manners.at_once
        running: dict[Future[Answer], Batch] = {}
        with ThreadPoolExecutor(at_once) as pool:
            try:
                while True:
                    while len(running) < at_once and (
                        batch := self._next(reads, busy=bool(running))
                    ):
                        running[pool.submit(self._ask, batch)] = batch
                    if not running:
                        return
                    for future in wait(running, None, FIRST_COMPLETED).done:
                        self._record(running.pop(future), future.result())
            except BaseException:
                self.api.close()
                raise

    def _next(self, reads: bool, *, busy: bool) -> Batch | None:
        """The rest of a batch, or a new one; None where answers must come first."""
        if self.waiting:
            return self.waiting.popleft()
        most = min(TITLES, self.state.room) if reads else TITLES
        size = min(most, self.state.queue)
        if size <= 0 or (reads and busy and size < most):
            return None
        return self.state.begin(size, reads=reads)

    def _ask(self, batch: Batch) -> Answer:
        titles = list(batch.titles)
        question = {**self.questions[batch.reads], "titles": "|".join(titles)}
        answer = self.api.ask(
            question | batch.onward, partial(read_answer, titles=titles)
        )
        if batch.onward and answer.onward == batch.onward:
            raise UserError(
                f"{self.api.address} goes on with the same answer for ever."
            )
        return answer

    def _record(self, batch: Batch, answer: Answer) -> None:
        pages = self.state.num_pages
        rest = self.state.record(batch, answer)
        if rest:
            self.waiting.appendleft(rest)
        done = self.state.num_pages - pages if batch.reads else len(batch.titles)
        self.progress.advance(0 if rest else done, self._note())

    def _note(self) -> str:
        seconds = max(time.monotonic() - self.begun_at, 1e-9)
        rate = self.api.pace.turns / seconds
        links, queue = self.state.num_links, self.state.queue
        return f"· {links:,} links · {queue:,} queued · {rate:.1f} requests/s"
