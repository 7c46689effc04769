"""The blocking client."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException
from typing import Any, Literal, TypeVar

from . import _requests
from ._call import Call, End, Fail, Now, Pause, Step
from ._options import Options, Token, complete
from ._outcome import Done, Lost, Outcome, Over, Unsent
from ._question import Question
from ._requests import Ask, HttpRequest, Resume
from ._sync_http import Cancel, Life, LineStream, SyncTransport
from ._targets import Targets
from ._watch import RESUME_TIME, WatchState
from ._sync_lease import Lease
from .errors import SamyaError
from .types import AllGrant, Entity, EntityState, Grant, LeaseFacts, LimitChange, Receipt

T = TypeVar("T")


class Client:
    """Acquires and releases tokens at the app managers of a cluster.

    An operation that may or may not have been done is repeated in a way that can do it only
    once. Make a single client per program; any number of threads may call. Every call raises a
    SamyaError if it fails. Times are seconds.

    targets: HTTP addresses of app managers, nearest first: 1 to 128, such as "https://am-us:8080".
    token: the bearer token to show, or a function that returns it, such as `token_file`.
    tls: the context for targets of https; see `tls_context`.
    timeout: how long a call may take; a wait for tokens is added.
    repeat_time: how long beyond its deadline a request of unknown outcome can be resumed. With
    the deadline it must stay below the request retention of the sites less their clock skew,
    4m50s by default.
    try_time: how long a target may be silent before the next is asked.
    random, now, transport and wait are for tests.
    """

    def __init__(
        self,
        targets: Sequence[str],
        *,
        token: Token = None,
        tls: ssl.SSLContext | None = None,
        timeout: float = 10.0,
        repeat_time: float = 60.0,
        try_time: float = 2.0,
        random: Callable[[], float] | None = None,
        now: Callable[[], Now] | None = None,
        transport: Any = None,
        wait: Callable[[threading.Event, float], object] = threading.Event.wait,
    ) -> None:
        o = complete(targets, token, tls, timeout, repeat_time, try_time, random, now)
        self._o: Options = o
        self._now = o.now
        self._wait = wait
        self._targets = Targets(len(o.targets), o.random)
        self._transport = transport or SyncTransport(list(o.targets))
        self._closing = Cancel()

    def close(self) -> None:
        """Ends the calls under way with a ClosedError, and closes all connections."""
        self._closing.cancel()
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def acquire(
        self,
        entity: str,
        tokens: int,
        *,
        wait: float | None = None,
        min_tokens: int | None = None,
        dry_run: bool = False,
        request_id: str | None = None,
        resume: Resume = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Grant:
        """Takes tokens of an entity, at least 1. Returns once the grant is durable.

        wait: how long to wait for tokens of other sites, 0 to 60; default: as the site decides.
        min_tokens: accept fewer tokens, at least this many, once not all can be had.
        dry_run: only tell how many tokens would be granted at once.
        request_id: names the request in place of a generated id.
        resume: goes on with a request of unknown outcome; None changes nothing.
        """
        return self._run(
            _requests.acquire(
                self._now(),
                entity,
                tokens,
                wait=wait,
                min_tokens=min_tokens,
                dry_run=dry_run,
                request_id=request_id,
                resume=resume,
                timeout=timeout,
            ),
            timeout,
            cancel,
        )

    def acquire_lease(
        self,
        entity: str,
        tokens: int,
        ttl: float,
        *,
        holder: str | None = None,
        wait: float | None = None,
        request_id: str | None = None,
        resume: Resume = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Lease:
        """Takes tokens as a lease with a time to live, 1 s to 7 days."""
        ask = _requests.acquire_lease(
            self._now(),
            entity,
            tokens,
            ttl,
            holder=holder,
            wait=wait,
            request_id=request_id,
            resume=resume,
            timeout=timeout,
        )
        return Lease(self, self._run(ask, timeout, cancel))

    def lease_named(self, name: str, entity: str) -> Lease:
        """A lease that was granted earlier, with only its name and entity. Asks no site."""
        now = self._now()
        return Lease(self, LeaseFacts(name, entity, 0, "", now.wall, 0.0, now.mono))

    def release(
        self,
        entity: str,
        tokens: int,
        *,
        request_id: str | None = None,
        resume: Resume = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Receipt:
        """Gives tokens back, at least 1. Returns once the release is durable."""
        ask = _requests.release(self._now(), entity, tokens, lease=None, request_id=request_id, resume=resume)
        return self._run(ask, timeout, cancel)

    def acquire_all(
        self,
        parts: Sequence[tuple[str, int]],
        *,
        wait: float | None = None,
        request_id: str | None = None,
        resume: Resume = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> AllGrant:
        """Takes tokens of up to 1,000 entities, all or none; an error names the `lacking` entity."""
        ask = _requests.acquire_all(
            self._now(), parts, wait=wait, request_id=request_id, resume=resume, timeout=timeout
        )
        return self._run(ask, timeout, cancel)

    def entity(
        self,
        entity: str,
        *,
        consistency: Literal["exact", "bounded", "local"] | None = None,
        max_age: float | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Entity:
        """Reads an entity, and the books of the sites about it."""
        return self._run(_requests.read(entity, consistency, max_age), timeout, cancel)

    def create_entity(
        self,
        entity: str,
        limit: int,
        *,
        parent: str | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> None:
        """Creates an entity with a limit, 0 to 2^53-1, by decision of a majority of the sites."""
        self._run(_requests.create_entity(self._now(), entity, limit, parent, request_id), timeout, cancel)

    def set_limit(
        self,
        entity: str,
        limit: int,
        *,
        expected_version: int | None = None,
        wait_applied: bool = False,
        request_id: str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> LimitChange:
        """Changes the limit of an entity, as a majority of the sites decides."""
        ask = _requests.set_limit(self._now(), entity, limit, expected_version, wait_applied, request_id)
        return self._run(ask, timeout, cancel)

    def move_entity(
        self, entity: str, parent: str, *, request_id: str | None = None, timeout: float | None = None
    ) -> None:
        """Moves an entity below another, with all below it; an empty parent means none."""
        self._run(_requests.move_entity(self._now(), entity, parent, request_id), timeout)

    def delete_entity(
        self, entity: str, *, subtree: bool = False, request_id: str | None = None, timeout: float | None = None
    ) -> None:
        """Deletes an entity, with `subtree` all below it too, and forgets its tokens that are out."""
        self._run(_requests.delete_entity(self._now(), entity, subtree, request_id), timeout)

    def watch(self, entity: str, *, resume_token: str = "", cancel: Cancel | None = None) -> Iterator[EntityState]:
        """Tells the present state of an entity and each later state, until it is deleted.

        A broken stream is resumed at another target. Leave the loop, or cancel, to end it.
        """
        watching = WatchState(entity, resume_token)
        life = Life(self._wait, cancel, self._closing)
        try:
            while True:
                stream, target = self._open(_requests.watch(entity, watching.token), life, cancel)
                outcome: Outcome = Lost(None)
                begun = self._now().mono
                try:
                    for line in stream.lines():
                        got = watching.line(line)
                        if not isinstance(got, EntityState):
                            outcome = got
                            break
                        yield got
                        if got.deleted:
                            return
                except (OSError, HTTPException, ValueError) as e:
                    outcome = Lost(e)
                finally:
                    stream.close()
                over = self._over(cancel)
                if over is not None:
                    raise Question(entity).final(over)
                now = self._now().mono
                self._targets.learn(target, outcome, now, now - begun, 0.0)
                following = watching.ended(outcome)
                if isinstance(following, SamyaError):
                    raise following
                life.wait(following)
        finally:
            life.close()

    def _over(self, cancel: Cancel | None) -> Over | None:
        if cancel is not None and cancel.canceled:
            return Over("canceled")
        return Over("closed") if self._closing.canceled else None

    def _run(self, ask: Ask[T], timeout: float | None = None, cancel: Cancel | None = None) -> T:
        life = Life(self._wait, cancel, self._closing)
        asked = self._now()

        def send(target: int, by: float) -> Outcome:
            request = self._request(ask)
            if isinstance(request, Unsent):
                return request
            return self._transport.send(target, request, ask, by, life)

        try:
            return ask.decode(self._steps(ask, timeout, cancel, life, send), asked)
        finally:
            life.close()

    def _request(self, ask: Ask[Any]) -> HttpRequest | Unsent:
        try:
            return ask.request(self._o.token() if self._o.token is not None else None)
        except OSError as e:
            # Without its token the request is not sent at all.
            return Unsent(e)

    def _open(self, ask: Ask[Any], life: Life, cancel: Cancel | None) -> tuple[LineStream, int]:
        opened: list[tuple[LineStream, int]] = []

        def send(target: int, by: float) -> Outcome:
            request = self._request(ask)
            if isinstance(request, Unsent):
                return request
            got = self._transport.open(target, request, by, life)
            if not isinstance(got, LineStream):
                return got
            opened.append((got, target))
            return Done()

        self._steps(ask, RESUME_TIME, cancel, life, send)
        return opened[-1]

    def _steps(
        self,
        ask: Ask[Any],
        timeout: float | None,
        cancel: Cancel | None,
        life: Life,
        send: Callable[[int, float], Outcome],
    ) -> Any:
        begun = self._now()
        allowed = _requests.allowed(timeout, self._o.timeout + ask.decider.wait)
        call = Call(ask.decider, self._targets, begun.mono + allowed, self._o.try_time, self._o.repeat_time)
        over = self._over(cancel)
        step: Step = call.begin(begun) if over is None else call.fail(over)
        while True:
            if isinstance(step, End):
                return step.body
            if isinstance(step, Fail):
                raise step.error
            if isinstance(step, Pause):
                life.wait(step.seconds)
                over = self._over(cancel)
                step = call.resumed(self._now()) if over is None else call.fail(over)
                continue
            outcome = send(step.target, step.by)
            step = call.told(outcome, self._now(), self._over(cancel))
