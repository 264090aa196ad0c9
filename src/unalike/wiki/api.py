"""Api: questions to the action API of a wiki, asked until they are answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from unalike.datasets.fetching.download import PASSING
from unalike.errors import UserError
from unalike.wiki.connection import FAULTS, Connection, Reply, parsed
from unalike.wiki.manners import Manners
from unalike.wiki.pace import Pace

COMMON = {"format": "json", "formatversion": "2", "errorformat": "plaintext"}
LONGEST_REST = 3600.0
"""Seconds that a wiki may ask for; more is taken as this much."""

BUSY = ("maxlag", "ratelimited", "readonly")
"""Errors of the API that pass, and how those begin that are the wiki's own faults."""
INTERNAL = "internal_api_error"

Read = TypeVar("Read")


class PassingError(Exception):
    """This answer is no use, the next may be; the text says why."""

    def __init__(self, reason: str, rest: float = 0.0) -> None:
        super().__init__(reason)
        self.rest = rest


class Api:
    """A wiki that answers questions, to any number of threads."""

    def __init__(self, address: str, manners: Manners) -> None:
        parsed(address)
        self.address = address
        self.manners = manners
        self.pace = Pace(manners.rate)
        self.idle: SimpleQueue[Connection] = SimpleQueue()
        self.lines: list[Connection] = []

    def ask(
        self, question: Mapping[str, str], read: Callable[[dict[str, Any]], Read]
    ) -> Read:
        """What `read` makes of the answer, after as many tries as manners allow."""
        wait = self.manners.first_wait
        for left in reversed(range(self.manners.tries)):
            self.pace.wait()
            try:
                return self._read(self._ask(question), read)
            except PassingError as error:
                reason, rest = str(error), error.rest
            if left:
                self.pace.rest(max(rest, min(wait, self.manners.longest_wait)))
                wait *= 2
        raise UserError(
            f"{self.address} gave no useful answer in {self.manners.tries} tries "
            f"({reason}); the same command goes on later."
        )

    def close(self) -> None:
        """Let go of waiting threads and hang up."""
        self.pace.stop()
        for line in self.lines:
            line.hang_up()

    def _read(
        self, answer: dict[str, Any], read: Callable[[dict[str, Any]], Read]
    ) -> Read:
        try:
            return read(answer)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise PassingError(f"an answer without its parts: {error!r}") from None

    def _ask(self, question: Mapping[str, str]) -> dict[str, Any]:
        try:
            line = self.idle.get_nowait()
        except Empty:
            manners = self.manners
            line = Connection(self.address, manners.contact, manners.timeout)
            self.lines.append(line)
        try:
            reply = line.post(
                {**COMMON, "maxlag": str(self.manners.maxlag), **question}
            )
        except FAULTS as error:
            raise PassingError(str(error) or type(error).__name__) from None
        finally:
            self.idle.put(line)
        return self._understood(reply)

    def _understood(self, reply: Reply) -> dict[str, Any]:
        rest = asked_rest(reply.headers.get("Retry-After"))
        if reply.status in PASSING:
            raise PassingError(f"status {reply.status}", rest)
        if reply.status != 200:
            onward = reply.headers.get("Location")
            told = f" and points to {onward}" if onward else ""
            raise UserError(f"{self.address} answers {reply.status}{told}.")
        if reply.headers.get_content_type() == "text/html":
            raise UserError(f"{self.address} is a web page, not the API of a wiki.")
        try:
            answer = json.loads(reply.body)
        except ValueError:
            raise PassingError("an answer that is not JSON", rest) from None
        if not isinstance(answer, dict):
            raise PassingError("an answer that is no JSON object", rest)
        self._complain(answer, rest)
        return answer

    def _complain(self, answer: dict[str, Any], rest: float) -> None:
        """Raise what the errors of an answer mean, if it has any."""
        errors = answer.get("errors") or [answer.get("error")]
        if errors == [None]:
            return
        try:
            error = errors[0]
            code, text = str(error["code"]), str(error.get("text", error.get("info")))
        except (LookupError, TypeError, AttributeError):
            code, text = "unknown", str(errors)[:200]
        if code in BUSY or code.startswith(INTERNAL):
            raise PassingError(f"{code}: {text}", rest)
        raise UserError(f"{self.address} answers with the error {code}: {text}")


def asked_rest(header: str | None) -> float:
    """The seconds that a Retry-After header asks for: a number or a date."""
    if header is None:
        return 0.0
    try:
        return _bounded(float(header))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return _bounded((date - datetime.now(UTC)).total_seconds())


def _bounded(seconds: float) -> float:
    return min(LONGEST_REST, max(0.0, seconds))
