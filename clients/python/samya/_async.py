"""The client for asyncio."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from http.client import HTTPException
from typing import Any, Literal, TypeVar

from . import _requests
from ._call import Call, End, Fail, Now, Pause, Step, Try
from ._options import Options, Token, complete
from ._outcome import Done, Lost, Outcome, Over, Unsent
from ._question import Question
from ._requests import Ask, HttpRequest, Resume
from ._async_http import AsyncLineStream, AsyncTransport, Sending
from ._targets import Targets
from ._watch import RESUME_TIME, WatchState
from ._async_lease import AsyncLease
from .errors import SamyaError
from .types import AllGrant, Entity, EntityState, Grant, LeaseFacts, LimitChange, Receipt

T = TypeVar("T")


class AsyncClient:
    """Acquires and releases tokens at the app managers of a cluster.

    An operation that may or may not have been done is repeated in a way that can do it only
    once. Make a single client per program; any number of tasks of a single event loop may call. Every call raises a
    SamyaError if it fails. Times are seconds.

    targets: HTTP addresses of app managers, nearest first: 1 to 128, such as "https://am-us:8080".
    token: the bearer token to show, or a function that returns it, such as `token_file`.
    tls: the context for targets of https; see `tls_context`.
    timeout: how long a call may take; a wait for tokens is added.
    repeat_time: how long beyond its deadline a request of unknown outcome can be resumed. With
    the deadline it must stay below the request retention of the sites less their clock skew,
    4m50s by default.
    try_time: how long a target may be silent before the next is asked.
    random, now, transport and pause are for tests.
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
        pause: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        o = complete(targets, token, tls, timeout, repeat_time, try_time, random, now)
        self._o: Options = o
        self._now = o.now
        self._pause = pause
        self._targets = Targets(len(o.targets), o.random)
        self._transport = transport or AsyncTransport(list(o.targets))
        self._closed = False
        # What is under way, to be woken once the client is closed.
        self._waiting: set[asyncio.Future[None]] = set()

    async def close(self) -> None:
        """Ends the calls under way with a ClosedError, and closes all connections."""
        self._closed = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def acquire(
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
    ) -> Grant:
        """Takes tokens of an entity, at least 1. Returns once the grant is durable.

        wait: how long to wait for tokens of other sites, 0 to 60; default: as the site decides.
        min_tokens: accept fewer tokens, at least this many, once not all can be had.
        dry_run: only tell how many tokens would be granted at once.
        request_id: names the request in place of a generated id.
        resume: goes on with a request of unknown outcome; None changes nothing.
        """
        return await self._run(
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
        )

    async def acquire_lease(
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
    ) -> AsyncLease:
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
        return AsyncLease(self, await self._run(ask, timeout))

    def lease_named(self, name: str, entity: str) -> AsyncLease:
        """A lease that was granted earlier, with only its name and entity. Asks no site."""
        now = self._now()
        return AsyncLease(self, LeaseFacts(name, entity, 0, "", now.wall, 0.0, now.mono))

    async def release(
        self,
        entity: str,
        tokens: int,
        *,
        request_id: str | None = None,
        resume: Resume = None,
        timeout: float | None = None,
    ) -> Receipt:
        """Gives tokens back, at least 1. Returns once the release is durable."""
        ask = _requests.release(self._now(), entity, tokens, lease=None, request_id=request_id, resume=resume)
        return await self._run(ask, timeout)

    async def acquire_all(
        self,
        parts: Sequence[tuple[str, int]],
        *,
        wait: float | None = None,
        request_id: str | None = None,
        resume: Resume = None,
        timeout: float | None = None,
    ) -> AllGrant:
        """Takes tokens of up to 1,000 entities, all or none; an error names the `lacking` entity."""
        ask = _requests.acquire_all(
            self._now(), parts, wait=wait, request_id=request_id, resume=resume, timeout=timeout
        )
        return await self._run(ask, timeout)

    async def entity(
        self,
        entity: str,
        *,
        consistency: Literal["exact", "bounded", "local"] | None = None,
        max_age: float | None = None,
        timeout: float | None = None,
    ) -> Entity:
        """Reads an entity, and the books of the sites about it."""
        return await self._run(_requests.read(entity, consistency, max_age), timeout)

    async def create_entity(
        self,
        entity: str,
        limit: int,
        *,
        parent: str | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Creates an entity with a limit, 0 to 2^53-1, by decision of a majority of the sites."""
        await self._run(_requests.create_entity(self._now(), entity, limit, parent, request_id), timeout)

    async def set_limit(
        self,
        entity: str,
        limit: int,
        *,
        expected_version: int | None = None,
        wait_applied: bool = False,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> LimitChange:
        """Changes the limit of an entity, as a majority of the sites decides."""
        ask = _requests.set_limit(self._now(), entity, limit, expected_version, wait_applied, request_id)
        return await self._run(ask, timeout)

    async def move_entity(
        self, entity: str, parent: str, *, request_id: str | None = None, timeout: float | None = None
    ) -> None:
        """Moves an entity below another, with all below it; an empty parent means none."""
        await self._run(_requests.move_entity(self._now(), entity, parent, request_id), timeout)

    async def delete_entity(
        self, entity: str, *, subtree: bool = False, request_id: str | None = None, timeout: float | None = None
    ) -> None:
        """Deletes an entity, with `subtree` all below it too, and forgets its tokens that are out."""
        await self._run(_requests.delete_entity(self._now(), entity, subtree, request_id), timeout)

    async def watch(self, entity: str, *, resume_token: str = "") -> AsyncIterator[EntityState]:
        """Tells the present state of an entity and each later state, until it is deleted.

        A broken stream is resumed at another target. Leave the loop, or cancel the task, to end it.
        """
        watching = WatchState(entity, resume_token)
        while True:
            stream, target = await self._open(_requests.watch(entity, watching.token))
            outcome: Outcome = Lost(None)
            begun = self._now().mono
            try:
                lines = stream.lines()
                while True:
                    line = await self._race(_following(lines))
                    if line is None:
                        break
                    got = watching.line(line)
                    if not isinstance(got, EntityState):
                        outcome = got
                        break
                    yield got
                    if got.deleted:
                        return
            except (OSError, EOFError, HTTPException, ValueError) as e:
                outcome = Lost(e)
            finally:
                stream.close()
            if self._closed:
                raise Question(entity).final(Over("closed"))
            now = self._now().mono
            self._targets.learn(target, outcome, now, now - begun, 0.0)
            following = watching.ended(outcome)
            if isinstance(following, SamyaError):
                raise following
            await self._sleep(following)

    async def _race(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T | None:
        """The result of work, or None once its time is over or the client is closed."""
        closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(work)
        self._waiting.add(closing)
        try:
            if self._closed:
                return None
            await asyncio.wait({task, closing}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            self._waiting.discard(closing)
            closing.cancel()
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _sleep(self, seconds: float) -> None:
        await self._race(self._pause(seconds))

    async def _run(self, ask: Ask[T], timeout: float | None = None) -> T:
        asked = self._now()

        async def send(target: int, request: HttpRequest, progress: Sending) -> Outcome:
            return await self._transport.send(target, request, ask, progress)

        return ask.decode(await self._steps(ask, timeout, send), asked)

    async def _open(self, ask: Ask[Any]) -> tuple[AsyncLineStream, int]:
        opened: list[tuple[AsyncLineStream, int]] = []

        async def send(target: int, request: HttpRequest, progress: Sending) -> Outcome:
            got = await self._transport.open(target, request, progress)
            if not isinstance(got, AsyncLineStream):
                return got
            opened.append((got, target))
            return Done()

        await self._steps(ask, RESUME_TIME, send)
        return opened[-1]

    async def _steps(self, ask: Ask[Any], timeout: float | None, send: Send) -> Any:
        begun = self._now()
        allowed = _requests.allowed(timeout, self._o.timeout + ask.decider.wait)
        call = Call(ask.decider, self._targets, begun.mono + allowed, self._o.try_time, self._o.repeat_time)
        step: Step = call.fail(Over("closed")) if self._closed else call.begin(begun)
        while True:
            if isinstance(step, End):
                return step.body
            if isinstance(step, Fail):
                raise step.error
            progress = Sending()
            try:
                if isinstance(step, Pause):
                    await self._sleep(step.seconds)
                    step = call.fail(Over("closed")) if self._closed else call.resumed(self._now())
                    continue
                outcome = await self._attempt(ask, step, send, progress)
            except asyncio.CancelledError as e:
                # The task is canceled. What became of its call stands behind the cancellation.
                if isinstance(step, Pause):
                    raise e from call.fail(Over("canceled")).error
                ended = call.told(Lost(e) if progress.sent else Unsent(e), self._now(), Over("canceled"))
                raise e from ended.error if isinstance(ended, Fail) else None
            step = call.told(outcome, self._now(), Over("closed") if self._closed else None)

    async def _attempt(self, ask: Ask[Any], step: Try, send: Send, progress: Sending) -> Outcome:
        try:
            request = ask.request(self._o.token() if self._o.token is not None else None)
        except OSError as e:
            # Without its token the request is not sent at all.
            return Unsent(e)
        try:
            outcome = await self._race(send(step.target, request, progress), max(0.0, step.by - self._now().mono))
        except (OSError, EOFError, HTTPException, ValueError, asyncio.TimeoutError) as e:
            return Lost(e) if progress.sent else Unsent(e)
        if outcome is not None:
            return outcome
        late = TimeoutError("no answer in time")
        return Lost(late, silent=True) if progress.sent else Unsent(late, silent=True)


Send = Callable[[int, HttpRequest, Sending], Coroutine[Any, Any, Outcome]]


async def _following(lines: AsyncIterator[bytes]) -> bytes | None:
    """The next line; None at the end."""
    async for line in lines:
        return line
    return None
