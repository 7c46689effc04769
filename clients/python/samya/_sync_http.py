"""HTTP over blocking sockets: a few connections to each target, kept for further calls."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Union

from ._options import Address
from ._outcome import Lost, Outcome, Unsent, outcome_of
from ._requests import Ask, HttpRequest
from ._watch import MAX_LINE

#: The longest answer, in bytes.
MAX_ANSWER = 4 << 20

#: How long it may take to set up a connection, in seconds.
CONNECT_TIME = 1.0

# The most idle connections that are kept to a target.
_MAX_IDLE = 32

# How long a connection may be silent before the system checks it, in seconds.
_KEEP_ALIVE_TIME = 15


class Cancel:
    """Ends calls early, from any thread: hand it to a call, and call `cancel`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._canceled = False
        self._hooks: dict[int, Callable[[], None]] = {}
        self._next = 0

    @property
    def canceled(self) -> bool:
        """Whether somebody has canceled."""
        return self._canceled

    def cancel(self) -> None:
        """Ends the calls under way that were handed this, and all later ones."""
        with self._lock:
            self._canceled = True
            hooks = list(self._hooks.values())
        for hook in hooks:
            hook()

    def hook(self, f: Callable[[], None]) -> Callable[[], None]:
        """Calls f once somebody cancels; the result forgets f."""
        with self._lock:
            self._next += 1
            key = self._next
            self._hooks[key] = f
            canceled = self._canceled
        if canceled:
            f()

        def forget() -> None:
            with self._lock:
                self._hooks.pop(key, None)

        return forget


class Life:
    """The life of a call: it ends with its caller's Cancel, or with the client."""

    def __init__(self, wait: Callable[[threading.Event, float], object], *sources: Union[Cancel, None]) -> None:
        self._wait = wait
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._over = threading.Event()
        self._forget = [s.hook(self._end) for s in sources if s is not None]

    def _end(self) -> None:
        with self._lock:
            self._over.set()
            s = self._socket
        if s is not None:
            try:
                # A read that waits returns at once. TLS keeps its state: the reader still uses it.
                socket.socket.shutdown(s, socket.SHUT_RDWR)
            except OSError:
                pass

    def wait(self, seconds: float) -> None:
        """Waits for a time, or until the call is over."""
        self._wait(self._over, seconds)

    def uses(self, s: socket.socket | None) -> None:
        """Notes the socket that the call reads from."""
        with self._lock:
            self._socket = s
            over = self._over.is_set()
        if over:
            self._end()

    def close(self) -> None:
        for f in self._forget:
            f()


class SyncTransport:
    """Carries requests to targets. It repeats nothing."""

    def __init__(self, targets: "list[Address]") -> None:
        self._targets = targets
        self._lock = threading.Lock()
        self._idle: list[list[HTTPConnection]] = [[] for _ in targets]
        self._closed = False

    def send(self, target: int, request: HttpRequest, ask: Ask, by: float, life: Life) -> Outcome:
        """Makes a try, which ends at `by` by the monotonic clock, or with the life of its call."""
        connection = self._kept(target)
        try:
            if connection is None:
                connection = self._connect(target, by)
        except (OSError, HTTPException) as e:
            return Unsent(e, _early(e, by))
        life.uses(connection.sock)
        try:
            response = self._ask(connection, request, by)
            text = _read(connection, response, by)
        except TimeoutError as e:
            connection.close()
            return Lost(e, silent=True)
        except (OSError, HTTPException, ValueError) as e:
            connection.close()
            return Lost(e)
        finally:
            life.uses(None)
        self._keep(target, connection, response)
        return outcome_of(response.status, response.headers.get("content-type", ""), text, ask.expects)

    def open(self, target: int, request: HttpRequest, by: float, life: Life) -> Union[Outcome, "LineStream"]:
        """Begins a watch, on a connection of its own."""
        try:
            connection = self._connect(target, by)
        except (OSError, HTTPException) as e:
            return Unsent(e, _early(e, by))
        life.uses(connection.sock)
        try:
            response = self._ask(connection, request, by)
            if response.status == 200:
                connection.sock.settimeout(None)
                return LineStream(connection, response)
            text = _read(connection, response, by)
        except (OSError, HTTPException, ValueError) as e:
            connection.close()
            return Lost(e, silent=isinstance(e, TimeoutError))
        connection.close()
        return outcome_of(response.status, response.headers.get("content-type", ""), text)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle = [c for all_of in self._idle for c in all_of]
            self._idle = [[] for _ in self._targets]
        for c in idle:
            c.close()

    def _kept(self, target: int) -> HTTPConnection | None:
        """An idle connection that the target has not closed."""
        while True:
            with self._lock:
                if not self._idle[target]:
                    return None
                connection = self._idle[target].pop()
            if not _readable(connection.sock):
                return connection
            connection.close()

    def _connect(self, target: int, by: float) -> HTTPConnection:
        at = self._targets[target]
        patience = max(0.001, min(CONNECT_TIME, by - time.monotonic()))
        if at.tls is None:
            connection = HTTPConnection(at.host, at.port, timeout=patience)
        else:
            connection = HTTPSConnection(at.host, at.port, timeout=patience, context=at.tls)
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        # Nobody connects anew in the middle of a try.
        connection.auto_open = 0
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEP_ALIVE_TIME)
        return connection

    def _ask(self, connection: HTTPConnection, request: HttpRequest, by: float) -> HTTPResponse:
        _allow(connection.sock, by)
        connection.request(request.method, request.path, request.body, dict(request.headers))
        return connection.getresponse()

    def _keep(self, target: int, connection: HTTPConnection, response: HTTPResponse) -> None:
        with self._lock:
            idle = self._idle[target]
            if not response.will_close and not self._closed and len(idle) < _MAX_IDLE:
                idle.append(connection)
                return
        connection.close()


class LineStream:
    """A watch that has begun."""

    def __init__(self, connection: HTTPConnection, response: HTTPResponse) -> None:
        self._connection = connection
        self._response = response

    def lines(self) -> Iterator[bytes]:
        """The lines, until the target ends the watch; an OSError or HTTPException if it breaks."""
        while True:
            line = self._response.readline(MAX_LINE + 1)
            if len(line) > MAX_LINE:
                raise HTTPException(f"a line of more than {MAX_LINE} bytes")
            if not line.endswith(b"\n"):
                return
            yield line

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def _early(e: BaseException, by: float) -> bool:
    """Whether a connection was given up for want of the caller's time alone."""
    return isinstance(e, TimeoutError) and time.monotonic() >= by


def _allow(s: socket.socket, by: float) -> None:
    """Bounds the next operations on a socket by a time."""
    left = by - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    s.settimeout(left)


def _read(connection: HTTPConnection, response: HTTPResponse, by: float) -> bytes:
    """Reads an answer to its end."""
    got = bytearray()
    s = connection.sock
    while True:
        if s is not None and s.fileno() >= 0:
            _allow(s, by)
        part = response.read1(1 << 16)
        if not part:
            break
        got += part
        if len(got) > MAX_ANSWER:
            raise HTTPException(f"an answer of more than {MAX_ANSWER} bytes")
    if response.length:
        raise IncompleteRead(bytes(got), response.length)
    # Without this the connection would take no further request.
    response.close()
    return bytes(got)


def _readable(s: socket.socket) -> bool:
    """Whether an idle connection has something to read: its end, mostly."""
    with selectors.DefaultSelector() as selector:
        selector.register(s, selectors.EVENT_READ)
        return bool(selector.select(0))
