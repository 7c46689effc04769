"""HTTP/1.1 over the streams of asyncio: as much of it as the API of samya needs."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException, parse_headers
from io import BytesIO
from typing import Union

from ._options import Address
from ._outcome import Outcome, outcome_of
from ._requests import Ask, HttpRequest
from ._sync_http import CONNECT_TIME, MAX_ANSWER
from ._watch import MAX_LINE

# The most connections to a target, without watches; further calls wait for one of them. And
# the most that are kept while they are idle.
_MAX_CONNECTIONS, _MAX_IDLE = 128, 32

# The longest head of an answer, in bytes.
_MAX_HEAD = 1 << 16

# How long a connection may be silent before the system checks it, in seconds.
_KEEP_ALIVE_TIME = 15


@dataclass
class Sending:
    """How far a try has come."""

    sent: bool = False


class Connection:
    """A connection to a target, for a request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer

    async def send(self, at: Address, request: HttpRequest) -> None:
        """Sends a request."""
        head = [f"{request.method} {request.path} HTTP/1.1", f"host: {at.authority}"]
        head += [f"{k}: {v}" for k, v in request.headers.items()]
        if request.body is not None:
            head.append(f"content-length: {len(request.body)}")
        if any("\r" in line or "\n" in line for line in head):
            raise ValueError("a line break in the head of a request")
        self._writer.write("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + (request.body or b""))
        await self._writer.drain()

    async def head(self) -> "Head":
        """Reads the head of an answer."""
        while True:
            status = (await self._line()).split(b" ", 2)
            if len(status) < 2 or not status[0].startswith(b"HTTP/1.") or not status[1].isdigit():
                raise HTTPException("an answer that is not of HTTP/1")
            lines = bytearray()
            while (line := await self._line()) not in (b"\r\n", b"\n"):
                lines += line
                if len(lines) > _MAX_HEAD:
                    raise HTTPException(f"a head of more than {_MAX_HEAD} bytes")
            # 1xx only announces the answer.
            if int(status[1]) >= 200:
                headers = parse_headers(BytesIO(bytes(lines) + b"\r\n"))
                return Head(int(status[1]), status[0] == b"HTTP/1.0", {k.lower(): v for k, v in headers.items()})

    async def _line(self) -> bytes:
        line = await self.reader.readline()
        if not line.endswith(b"\n"):
            raise HTTPException("the connection broke within an answer")
        return line

    async def body(self, head: "Head") -> AsyncIterator[bytes]:
        """Reads the parts of the body of an answer."""
        if head.status == 204:
            return
        if head.chunked:
            while size := int((await self._line()).split(b";")[0], 16):
                while size > 0:
                    part = await self.reader.read(min(size, 1 << 16))
                    if not part:
                        raise HTTPException("the connection broke within an answer")
                    size -= len(part)
                    yield part
                await self._line()
            while (await self._line()) not in (b"\r\n", b"\n"):
                pass
            return
        left = head.length
        while left is None or left > 0:
            part = await self.reader.read(1 << 16 if left is None else min(left, 1 << 16))
            if not part:
                if left is None:
                    return
                raise HTTPException("the connection broke within an answer")
            left = None if left is None else left - len(part)
            yield part

    def close(self) -> None:
        self._writer.close()


@dataclass(frozen=True)
class Head:
    """The head of an answer."""

    status: int
    old: bool
    headers: Mapping[str, str]

    @property
    def chunked(self) -> bool:
        return "chunked" in self.headers.get("transfer-encoding", "").lower()

    @property
    def length(self) -> int | None:
        text = self.headers.get("content-length")
        return int(text) if text is not None else None

    @property
    def closes(self) -> bool:
        """The connection takes no further request."""
        said = self.headers.get("connection", "").lower()
        return self.old or "close" in said or (self.length is None and not self.chunked and self.status != 204)


class AsyncTransport:
    """Carries requests to targets. It repeats nothing; its callers bound the time of a try."""

    def __init__(self, targets: "list[Address]") -> None:
        self._targets = targets
        self._idle: list[list[Connection]] = [[] for _ in targets]
        self._slots = [asyncio.Semaphore(_MAX_CONNECTIONS) for _ in targets]
        self._closed = False

    async def send(self, target: int, request: HttpRequest, ask: Ask, progress: Sending) -> Outcome:
        """Makes a try. Exceptions other than a cancellation are failures of the connection."""
        async with self._slots[target]:
            return await self._send(target, request, ask, progress)

    async def _send(self, target: int, request: HttpRequest, ask: Ask, progress: Sending) -> Outcome:
        connection = self._kept(target) or await self._connect(target)
        progress.sent = True
        kept = False
        try:
            await connection.send(self._targets[target], request)
            head = await connection.head()
            text = await _whole(connection, head)
            idle = self._idle[target]
            if not head.closes and not self._closed and len(idle) < _MAX_IDLE:
                idle.append(connection)
                kept = True
        finally:
            if not kept:
                connection.close()
        return outcome_of(head.status, head.headers.get("content-type", ""), text, ask.expects)

    async def open(self, target: int, request: HttpRequest, progress: Sending) -> Union[Outcome, "AsyncLineStream"]:
        """Begins a watch, on a connection of its own."""
        connection = await self._connect(target)
        progress.sent = True
        watching = False
        try:
            await connection.send(self._targets[target], request)
            head = await connection.head()
            if head.status == 200:
                watching = True
                return AsyncLineStream(connection, head)
            text = await _whole(connection, head)
        finally:
            if not watching:
                connection.close()
        return outcome_of(head.status, head.headers.get("content-type", ""), text)

    def close(self) -> None:
        self._closed = True
        for all_of in self._idle:
            while all_of:
                all_of.pop().close()

    def _kept(self, target: int) -> Connection | None:
        """An idle connection that the target has not closed."""
        while self._idle[target]:
            connection = self._idle[target].pop()
            if not connection.reader.at_eof() and connection.reader.exception() is None:
                return connection
            connection.close()
        return None

    async def _connect(self, target: int) -> Connection:
        at = self._targets[target]
        opening = asyncio.open_connection(
            at.host, at.port, ssl=at.tls, server_hostname=at.host if at.tls is not None else None, limit=MAX_LINE
        )
        reader, writer = await asyncio.wait_for(opening, CONNECT_TIME)
        s = writer.get_extra_info("socket")
        if s is not None:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if hasattr(socket, "TCP_KEEPIDLE"):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEP_ALIVE_TIME)
        return Connection(reader, writer)


class AsyncLineStream:
    """A watch that has begun."""

    def __init__(self, connection: Connection, head: Head) -> None:
        self._connection = connection
        self._head = head

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines, until the target ends the watch; an OSError or HTTPException if it breaks."""
        rest = bytearray()
        async for part in self._connection.body(self._head):
            rest += part
            while (end := rest.find(b"\n")) >= 0:
                line = bytes(rest[: end + 1])
                del rest[: end + 1]
                yield line
            if len(rest) > MAX_LINE:
                raise HTTPException(f"a line of more than {MAX_LINE} bytes")

    def close(self) -> None:
        self._connection.close()


async def _whole(connection: Connection, head: Head) -> bytes:
    got = bytearray()
    async for part in connection.body(head):
        got += part
        if len(got) > MAX_ANSWER:
            raise HTTPException(f"an answer of more than {MAX_ANSWER} bytes")
    return bytes(got)
