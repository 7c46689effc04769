"""Fakes of the transport and the clock, so that tests neither wait nor need a server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Union

from samya import AsyncClient, Client
from samya._async_http import AsyncLineStream, Sending
from samya._call import Now
from samya._outcome import Done, Lost, Outcome, Refusal, Refused, Unsent
from samya._requests import HttpRequest
from samya._sync_http import LineStream
from samya.errors import Details

WALL = 1_700_000_000.0

LOST = Lost(OSError("broken"))
UNSENT = Unsent(OSError("refused"))


def granted(tokens: int, **more: Any) -> Done:
    return Done({"entity": "acme/vm", "tokens": tokens, "request_id": "id", "site": "us", "left": 7, **more})


def refused(reason: str, **more: Any) -> Refused:
    return Refused(Refusal(Details(reason, **more)))


@dataclass
class Sent:
    target: int
    request: HttpRequest
    body: dict[str, Any]


class Broken:
    """A stream that breaks after its lines."""

    def __init__(self, *lines: Any) -> None:
        self.lines = lines


Answer = Callable[[Sent], Union[Outcome, list, Broken]]


class FakeTime:
    """A clock that goes on only as somebody waits."""

    def __init__(self) -> None:
        self.mono = 0.0

    def now(self) -> Now:
        return Now(self.mono, WALL + self.mono)

    def wait(self, over: threading.Event, seconds: float) -> None:
        if not over.is_set():
            self.mono += seconds

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.mono += seconds


def told(lines: Any) -> Iterator[bytes]:
    """The lines of a stream, and then its end or its failure."""
    broken = isinstance(lines, Broken)
    for line in lines.lines if broken else lines:
        yield json.dumps(line).encode() + b"\n"
    if broken:
        raise OSError("broken")


class SyncStream(LineStream):
    def __init__(self, lines: Any) -> None:
        self.closed = False
        self._told = lines

    def lines(self) -> Iterator[bytes]:
        return told(self._told)

    def close(self) -> None:
        self.closed = True


class AsyncStream(AsyncLineStream):
    def __init__(self, lines: Any) -> None:
        self.closed = False
        self._told = lines

    async def lines(self) -> AsyncIterator[bytes]:
        for line in told(self._told):
            yield line

    def close(self) -> None:
        self.closed = True


class FakeTransport:
    """Answers as a test says, and keeps what was sent."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.sent: list[Sent] = []
        self.streams: list[Any] = []
        self.closed = False

    def _ask(self, target: int, request: HttpRequest) -> Any:
        sent = Sent(target, request, json.loads(request.body) if request.body is not None else {})
        self.sent.append(sent)
        return self.answer(sent)

    def send(self, target: int, request: HttpRequest, ask: Any, by: float, life: Any) -> Outcome:
        return self._ask(target, request)

    def open(self, target: int, request: HttpRequest, by: float, life: Any) -> Any:
        return self._streamed(self._ask(target, request), SyncStream)

    def _streamed(self, got: Any, kind: Callable[[Any], Any]) -> Any:
        if not isinstance(got, (list, Broken)):
            return got
        self.streams.append(kind(got))
        return self.streams[-1]

    def close(self) -> None:
        self.closed = True


class AsyncFakeTransport(FakeTransport):
    async def send(self, target: int, request: HttpRequest, ask: Any, progress: Sending) -> Any:  # type: ignore[override]
        progress.sent = True
        got = self._ask(target, request)
        if asyncio.iscoroutine(got):
            got = await got
        return got

    async def open(self, target: int, request: HttpRequest, progress: Sending) -> Any:  # type: ignore[override]
        progress.sent = True
        return self._streamed(self._ask(target, request), AsyncStream)


TARGETS = ["http://127.0.0.1:1", "http://127.0.0.1:2"]


def client(answer: Answer, **options: Any) -> tuple[Client, FakeTransport, FakeTime]:
    transport, time = FakeTransport(answer), FakeTime()
    options = {"now": time.now, "wait": time.wait, **options}
    c = Client(TARGETS, transport=transport, random=lambda: 0.5, **options)
    return c, transport, time


def async_client(answer: Answer, **options: Any) -> tuple[AsyncClient, AsyncFakeTransport, FakeTime]:
    transport, time = AsyncFakeTransport(answer), FakeTime()
    c = AsyncClient(TARGETS, transport=transport, now=time.now, pause=time.pause, random=lambda: 0.5, **options)
    return c, transport, time
