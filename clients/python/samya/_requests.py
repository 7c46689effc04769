"""What each call asks, and how its answer is read. Both clients share it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, Union
from urllib.parse import quote, urlencode

from ._call import Now
from ._movement import Decider, Movement
from ._outcome import number, text
from ._question import Question
from .errors import ResumePoint, SamyaError, invalid
from .types import AllGrant, Committed, Entity, EntityState, Grant, LeaseFacts, LimitChange, Receipt

T = TypeVar("T")

#: How a call is resumed: with the error of the earlier call, or its kept resume point.
Resume = Union[SamyaError, ResumePoint, None]

# The wait of an acquire that gives none, at sites with the default setting, in seconds.
_SITE_WAIT = 5.0

# A little more than the longest time a target waits for all sites, in seconds.
_APPLIED_WAIT = 11.0

# The longest time that calls can be given, in seconds; the API has bounds of its own below.
_LONGEST = 365 * 24 * 3600.0

# The largest count that every JSON client can hold exactly.
_MAX_COUNT = 2**53 - 1

# The members of answers.
_MOVED, _LEASE, _ENTITY = ("tokens", "site"), ("name", "remaining_ms"), ("name", "limit")

_ULID = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@dataclass(frozen=True)
class Ask(Generic[T]):
    """What a call asks; the decider adds the members of each try to the body."""

    method: str
    path: str
    #: The body; for GET and DELETE the query.
    body: Mapping[str, Any]
    decider: Decider
    #: Reads the answer to a request that was made at a time.
    decode: Callable[[Any, Now], T]
    #: The members that an answer to this has, and to something else may lack.
    expects: tuple[str, ...] = ()

    def request(self, token: str | None) -> HttpRequest:
        """The next try, as it is sent."""
        members = {**self.body, **self.decider.next()}
        headers = {"accept": "application/json"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        if self.method in ("POST", "PATCH"):
            headers["content-type"] = "application/json"
            return HttpRequest(self.method, self.path, headers, json.dumps(members).encode())
        query = urlencode(members)
        return HttpRequest(self.method, f"{self.path}?{query}" if query else self.path, headers, None)


@dataclass(frozen=True)
class HttpRequest:
    """A request to any target."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None


def new_id(wall: float) -> str:
    """A new request id: a ULID, 48 bits of time in milliseconds and 80 random bits."""
    n = int(wall * 1000) << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join(_ULID[n >> 5 * i & 31] for i in reversed(range(26)))


def entity_path(entity: str, verb: str = "") -> str:
    """The path of an entity. Slashes part its segments, and stay.

    Names that would be the path of something else are refused here, all others by the API.
    """
    if ":" in entity or any(s in (".", "..") for s in entity.split("/")):
        raise invalid("name", 'must have no ":", and no segment "." or ".."')
    return "/v1/entities/" + quote(entity, safe="/") + (f":{verb}" if verb else "")


def allowed(timeout: float | None, default: float) -> float:
    """The time of a call, in seconds."""
    if timeout is None:
        return default
    if not 0 < timeout <= _LONGEST:
        raise invalid("timeout", "must be a number of seconds above 0, at most 365 days")
    return timeout


def duration(field: str, seconds: float) -> str:
    """A duration as the API reads it."""
    if not abs(seconds) <= _LONGEST:
        raise invalid(field, "must be a number of seconds, at most 365 days")
    return f"{round(seconds * 1e6)}us"


def count(field: str, n: int) -> int:
    """A count of tokens. JSON has no other numbers, and nothing may round a count."""
    if isinstance(n, bool) or not isinstance(n, int) or abs(n) > _MAX_COUNT:
        raise invalid(field, f"must be a whole number of at most {_MAX_COUNT}")
    return n


def _resume_of(resume: Resume) -> ResumePoint | None:
    if resume is None:
        return None
    point = resume.resume if isinstance(resume, SamyaError) else resume
    if point is None or not point.request_id or point.attempt < 1:
        raise invalid("resume", "an error that does not tell how to go on")
    return point


def _movement(now: Now, entity: str, wait: float, request_id: str | None, resume: Resume, dry: bool = False) -> Movement:
    return Movement(request_id or new_id(now.wall), entity, wait, dry, _resume_of(resume))


def _wait(wait: float | None, timeout: float | None) -> tuple[float, dict[str, Any]]:
    """How long an acquire may wait at a site, and what the body says of it.

    A caller with a time of its own gets the refusal within the time: without, the outcome
    would not be known.
    """
    asked = _SITE_WAIT if wait is None else wait
    if timeout is None:
        return asked, {} if wait is None else {"wait": duration("wait", asked)}
    least = min(asked, max(0.0, timeout - max(0.02, timeout / 10)))
    return least, {} if wait is None and least == asked else {"wait": duration("wait", least)}


def acquire(
    now: Now,
    entity: str,
    tokens: int,
    *,
    wait: float | None,
    min_tokens: int | None,
    dry_run: bool,
    request_id: str | None,
    resume: Resume,
    timeout: float | None,
) -> Ask[Grant]:
    within, body = _wait(wait, timeout)
    body["tokens"] = count("tokens", tokens)
    if min_tokens is not None:
        body["min_tokens"] = count("min_tokens", min_tokens)
    if dry_run:
        body["dry_run"] = True
    decider = _movement(now, entity, within, request_id, resume, dry_run)
    return Ask("POST", entity_path(entity, "acquire"), body, decider, _grant, _MOVED)


def _grant(body: Any, _: Now) -> Grant:
    return Grant(number(body, "tokens"), number(body, "left"), text(body, "site"), text(body, "request_id"))


def acquire_lease(
    now: Now,
    entity: str,
    tokens: int,
    ttl: float,
    *,
    holder: str | None,
    wait: float | None,
    request_id: str | None,
    resume: Resume,
    timeout: float | None,
) -> Ask[LeaseFacts]:
    within, body = _wait(wait, timeout)
    lease: dict[str, Any] = {"ttl": duration("lease.ttl", ttl)}
    if holder is not None:
        lease["holder"] = holder
    body.update(tokens=count("tokens", tokens), lease=lease)
    decider = _movement(now, entity, within, request_id, resume)
    return Ask(
        "POST",
        entity_path(entity, "acquire"),
        body,
        decider,
        lambda b, at: _lease(b["lease"], ttl, at),
        (*_MOVED, "lease"),
    )


def _lease(body: Mapping[str, Any], ttl: float, asked: Now) -> LeaseFacts:
    # The site counted the remaining time after the request was made: the end is on the safe side.
    remaining = number(body, "remaining_ms") / 1000
    return LeaseFacts(
        text(body, "name"),
        text(body, "entity"),
        number(body, "tokens"),
        text(body, "holder"),
        asked.wall + remaining,
        ttl,
        asked.mono + remaining,
    )


def renew(lease: LeaseFacts, ttl: float | None) -> Ask[LeaseFacts]:
    body = {"lease": lease.name}
    if ttl is not None:
        body["ttl"] = duration("ttl", ttl)
    lasts = lease.ttl if ttl is None else ttl
    return Ask("POST", "/v1/leases:renew", body, Question(lease.entity), lambda b, at: _lease(b, lasts, at), _LEASE)


def commit(now: Now, lease: LeaseFacts, tokens: int | None) -> Ask[Committed]:
    body: dict[str, Any] = {"lease": lease.name}
    if tokens is not None:
        body["tokens"] = count("tokens", tokens)
    decider = Question(lease.entity, new_id(now.wall), moves=True)
    return Ask(
        "POST",
        "/v1/leases:commit",
        body,
        decider,
        lambda b, _: Committed(number(b, "tokens"), number(b, "returned")),
        ("lease", "returned"),
    )


def release(
    now: Now,
    entity: str,
    tokens: int | None,
    *,
    lease: str | None,
    request_id: str | None,
    resume: Resume,
) -> Ask[Receipt]:
    body: dict[str, Any] = {}
    if tokens is not None:
        body["tokens"] = count("tokens", tokens)
    if lease is not None:
        body["lease"] = lease
    decider = _movement(now, entity, 0.0, request_id, resume)
    return Ask("POST", entity_path(entity, "release"), body, decider, _receipt, _MOVED)


def _receipt(body: Any, _: Now) -> Receipt:
    return Receipt(
        number(body, "tokens"),
        number(body, "left"),
        text(body, "site"),
        text(body, "request_id"),
        body.get("parked") is True,
    )


def acquire_all(
    now: Now,
    parts: Sequence[tuple[str, int]],
    *,
    wait: float | None,
    request_id: str | None,
    resume: Resume,
    timeout: float | None,
) -> Ask[AllGrant]:
    within, body = _wait(wait, timeout)
    body["atomic"] = True
    body["operations"] = [
        {"acquire": {"entity": entity, "tokens": count(f"operations[{i}].acquire.tokens", tokens)}}
        for i, (entity, tokens) in enumerate(parts)
    ]
    decider = _movement(now, "", within, request_id, resume)
    return Ask(
        "POST",
        "/v1/batch",
        body,
        decider,
        lambda b, _: AllGrant(text(b, "site"), text(b, "request_id")),
        ("results", "site"),
    )


def read(entity: str, consistency: str | None, max_age: float | None) -> Ask[Entity]:
    body: dict[str, Any] = {}
    if consistency is not None:
        body["consistency"] = consistency
    if max_age is not None:
        body["max_age"] = duration("max_age", max_age)
    return Ask("GET", entity_path(entity), body, Question(entity), lambda b, _: Entity(**_entity(b)), _ENTITY)


def watch(entity: str, resume_token: str) -> Ask[Any]:
    body = {"resume_token": resume_token} if resume_token else {}
    return Ask("GET", entity_path(entity, "watch"), body, Question(entity), lambda b, _: b)


def _entity(body: Mapping[str, Any]) -> dict[str, Any]:
    transit = body.get("in_transit")
    return {
        "name": text(body, "name"),
        "limit": number(body, "limit"),
        "generation": number(body, "generation"),
        "version": number(body, "version"),
        "parent": text(body, "parent"),
        "children": number(body, "children"),
        "available": number(body, "available"),
        "acquired": number(body, "acquired"),
        "in_transit": transit if isinstance(transit, int) else None,
        "may_exceed_by": number(body, "may_exceed_by"),
        "complete": body.get("complete") is True,
        "consistent": body.get("consistent") is True,
    }


def state(body: Mapping[str, Any]) -> EntityState:
    """Reads a state of a watched entity."""
    return EntityState(
        **_entity(body), deleted=body.get("deleted") is True, resume_token=text(body, "resume_token")
    )


def _change(
    now: Now,
    method: str,
    path: str,
    entity: str,
    body: Mapping[str, Any],
    request_id: str | None,
    decode: Callable[[Any, Now], T],
    wait: float = 0.0,
    expects: tuple[str, ...] = _ENTITY,
) -> Ask[T]:
    decider = Question(entity, request_id or new_id(now.wall), wait, moves=True)
    return Ask(method, path, body, decider, decode, expects)


def _nothing(_: Any, __: Now) -> None:
    return None


def create_entity(now: Now, entity: str, limit: int, parent: str | None, request_id: str | None) -> Ask[None]:
    body: dict[str, Any] = {"name": entity, "limit": count("limit", limit)}
    if parent is not None:
        body["parent"] = parent
    return _change(now, "POST", "/v1/entities", entity, body, request_id, _nothing)


def set_limit(
    now: Now,
    entity: str,
    limit: int,
    expected_version: int | None,
    wait_applied: bool,
    request_id: str | None,
) -> Ask[LimitChange]:
    body: dict[str, Any] = {"limit": count("limit", limit)}
    if expected_version is not None:
        body["expected_version"] = count("expected_version", expected_version)
    if wait_applied:
        body["wait_applied"] = True
    wait = _APPLIED_WAIT if wait_applied else 0.0
    return _change(now, "PATCH", entity_path(entity), entity, body, request_id, _limit_change, wait)


def _limit_change(body: Any, _: Now) -> LimitChange:
    missing = body.get("missing_sites")
    return LimitChange(
        number(body, "limit"),
        number(body, "version"),
        number(body, "may_exceed_by"),
        tuple(str(s) for s in missing) if isinstance(missing, list) else (),
    )


def move_entity(now: Now, entity: str, parent: str, request_id: str | None) -> Ask[None]:
    return _change(now, "POST", entity_path(entity, "move"), entity, {"parent": parent}, request_id, _nothing)


def delete_entity(now: Now, entity: str, subtree: bool, request_id: str | None) -> Ask[None]:
    body = {"subtree": "true"} if subtree else {}
    return _change(now, "DELETE", entity_path(entity), entity, body, request_id, _nothing, expects=())
