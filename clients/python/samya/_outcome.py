"""What became of a try, and why a call is over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

from .errors import CLOSED, Details, Violation, error_of

#: The media type of a problem document (RFC 9457).
PROBLEM_TYPE = "application/problem+json"


@dataclass(frozen=True)
class Refusal:
    """A refusal in an answer: what the problem document says."""

    details: Details
    #: The attempt to go on with, and the sites tried; only with OUTCOME_UNKNOWN.
    attempt: int = 0
    tried: tuple[str, ...] = ()


@dataclass(frozen=True)
class Done:
    """samya has answered with success."""

    body: Any = field(default_factory=dict)


@dataclass(frozen=True)
class Refused:
    """samya has answered with a problem document."""

    refusal: Refusal


@dataclass(frozen=True)
class Unsent:
    """The request was provably not sent.

    `silent`: the time of the try was over, and the target has done nothing.
    """

    cause: BaseException | None = None
    silent: bool = False


@dataclass(frozen=True)
class Lost:
    """The request may have been done, and no answer has come.

    `silent`: the time of the try was over, and the target has done nothing.
    """

    cause: BaseException | None = None
    silent: bool = False


Outcome = Union[Done, Refused, Unsent, Lost]


@dataclass(frozen=True)
class Over:
    """Why a call is over, other than by an answer."""

    kind: Literal["deadline", "canceled", "closed"]


class ForeignAnswer(Exception):
    """An answer that is not samya's, which proves nothing."""


def outcome_of(status: int, content_type: str, text: bytes, expects: Sequence[str] = ()) -> Outcome:
    """Turns an answer of HTTP into an outcome; a success has the expected members."""
    ok = 200 <= status < 300
    try:
        body = json.loads(text) if text or not ok else {}
    except ValueError:
        body = None
    if not isinstance(body, Mapping) or ok and any(key not in body for key in expects):
        return Lost(ForeignAnswer(f"an answer of status {status} that is not samya's"))
    if ok:
        return Done(body)
    refusal = refusal_of(body) if content_type.split(";")[0].strip() == PROBLEM_TYPE else None
    if refusal is None:
        return Lost(ForeignAnswer(f"an answer of status {status} without a problem document"))
    return Refused(refusal)


def refusal_of(body: Any) -> Refusal | None:
    """Reads a problem document; None if it is none of samya's."""
    if not isinstance(body, Mapping) or not isinstance(body.get("reason"), str):
        return None
    errors = body.get("errors")
    tried = body.get("tried")
    return Refusal(
        Details(
            reason=body["reason"],
            message=text(body, "detail") or text(body, "title"),
            entity=text(body, "entity"),
            request_id=text(body, "request_id"),
            site=text(body, "site"),
            lacking=text(body, "lacking"),
            left=body["tokens_left"] if isinstance(body.get("tokens_left"), int) else None,
            limit=body["limit"] if isinstance(body.get("limit"), int) else None,
            retry_after=number(body, "retry_after_ms") / 1000,
            violations=tuple(
                Violation(str(v.get("field")), str(v.get("problem")))
                for v in (errors if isinstance(errors, list) else [])
                if isinstance(v, Mapping)
            ),
        ),
        attempt=number(body, "attempt"),
        tried=tuple(str(s) for s in tried) if isinstance(tried, list) else (),
    )


def text(body: Mapping[str, Any], key: str) -> str:
    """The member of an answer as a string."""
    v = body.get(key)
    return v if isinstance(v, str) else ""


def number(body: Mapping[str, Any], key: str) -> int:
    """The member of an answer as a whole number."""
    v = body.get(key)
    return v if isinstance(v, int) else 0


def ended(over: Over) -> Details:
    """The details of a call that was over before anything was done."""
    if over.kind == "deadline":
        return Details("DEADLINE_EXCEEDED", "the deadline passed before anything was done")
    if over.kind == "canceled":
        return Details("CANCELED", "canceled before anything was done")
    return Details(CLOSED, "the client is closed; nothing was done")


def unreachable(cause: BaseException | None) -> Details:
    """The details of a call that could not be sent to anybody."""
    return Details("SITE_UNAVAILABLE", "no target could be reached; nothing was done", cause=cause)


def cause_of(over: Over | None, last: Details | None) -> BaseException:
    """The cause to show for an unknown outcome."""
    if over is None or over.kind == "deadline":
        return error_of(last) if last is not None else TimeoutError("the deadline has passed")
    return error_of(ended(over))


