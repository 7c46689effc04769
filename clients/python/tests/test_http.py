"""Both transports against a real server on this machine."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import unittest
from collections.abc import Callable
from typing import Any, Union

import samya
from samya._async_http import AsyncLineStream, AsyncTransport, Sending
from samya._options import Address
from samya._outcome import Done, Lost, Outcome, Unsent
from samya._question import Question
from samya._requests import Ask, HttpRequest
from samya._sync_http import Life, LineStream, SyncTransport

ASK: Ask[Any] = Ask("POST", "/v1/entities/a:acquire", {}, Question("a"), lambda b, _: b, ("tokens",))
POST = HttpRequest("POST", "/v1/entities/a:acquire", {"content-type": "application/json"}, b'{"tokens":1}')
GET = HttpRequest("GET", "/v1/entities/a:watch", {}, None)

OK = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 12\r\n\r\n{"tokens":1}'
CHUNKED = b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"tok\r\n7;x=y\r\nens":1}\r\n0\r\n\r\n'
LINES = b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\n{"a":1}\n\r\n4\r\n{"a"\r\n4\r\n:2}\n\r\n0\r\n\r\n'
FAR = 30.0


class Server:
    """Reads requests, and answers each with the bytes of a function; b"" breaks the connection."""

    def __init__(self, answer: Callable[[int], bytes]) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.asked = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self._listener.getsockname()[1], None)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            self._threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        got = b""
        try:
            while part := connection.recv(1 << 16):
                got += part
                head, found, body = got.partition(b"\r\n\r\n")
                if not found or b"POST" in head and len(body) < len(POST.body or b""):
                    continue
                self.requests.append(got)
                got = b""
                self.asked.set()
                answer = self._answer(len(self.requests))
                if not answer:
                    break
                connection.sendall(answer)
        except OSError:
            pass
        connection.close()

    def close(self) -> None:
        for c in [self._listener, *self._open]:
            try:
                socket.socket.shutdown(c, socket.SHUT_RDWR)
            except OSError:
                pass
        self._listener.close()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(FAR)


Send = Callable[[], Union[Outcome, list[bytes]]]


class Transports(unittest.TestCase):
    """Each test is made with the transport of either client."""

    def each(self, answer: Callable[[int], bytes], check: Callable[[Server, Send, Send], None]) -> None:
        for make in (self.blocking, self.asyncio):
            with self.subTest(make.__name__):
                server = Server(answer)
                try:
                    make(server, check)
                finally:
                    server.close()

    def blocking(self, server: Server, check: Callable[[Server, Send, Send], None]) -> None:
        transport = SyncTransport([server.address])
        life = Life(threading.Event.wait)

        def watch() -> Union[Outcome, list[bytes]]:
            stream = transport.open(0, GET, time.monotonic() + FAR, life)
            if not isinstance(stream, LineStream):
                return stream
            try:
                return list(stream.lines())
            finally:
                stream.close()

        check(server, lambda: transport.send(0, POST, ASK, time.monotonic() + FAR, life), watch)
        transport.close()

    def asyncio(self, server: Server, check: Callable[[Server, Send, Send], None]) -> None:
        loop = asyncio.new_event_loop()
        transport = AsyncTransport([server.address])

        async def send() -> Outcome:
            progress = Sending()
            try:
                return await transport.send(0, POST, ASK, progress)
            except Exception as e:
                return Lost(e) if progress.sent else Unsent(e)

        async def watch() -> Union[Outcome, list[bytes]]:
            stream = await transport.open(0, GET, Sending())
            if not isinstance(stream, AsyncLineStream):
                return stream
            try:
                return [line async for line in stream.lines()]
            finally:
                stream.close()

        check(server, lambda: loop.run_until_complete(send()), lambda: loop.run_until_complete(watch()))
        transport.close()
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    def test_answers_are_read_and_connections_kept(self) -> None:
        def check(server: Server, send: Send, __: Send) -> None:
            for _ in range(4):
                self.assertEqual(send(), Done({"tokens": 1}))
            self.assertEqual(server.connections, 1)
            self.assertTrue(server.requests[0].startswith(b"POST /v1/entities/a:acquire HTTP/1.1\r\n"))

        self.each(lambda n: OK if n % 2 else CHUNKED, check)

    def test_a_connection_that_the_target_closed_is_not_used_again(self) -> None:
        def check(server: Server, send: Send, _: Send) -> None:
            self.assertEqual(send(), Done({"tokens": 1}))
            self.assertEqual(send(), Done({"tokens": 1}))
            self.assertEqual(server.connections, 2)

        self.each(lambda _: OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), check)

    def test_a_broken_connection_leaves_the_outcome_unknown(self) -> None:
        for answer in (b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"):

            def broken(n: int, answer: bytes = answer) -> bytes:
                return answer

            def check(server: Server, send: Send, _: Send) -> None:
                threading.Thread(target=lambda: (server.asked.wait(), server.close()), daemon=True).start()
                self.assertIsInstance(send(), Lost)

            with self.subTest(answer):
                self.each(broken, check)

    def test_a_refused_connection_proves_that_nothing_was_sent(self) -> None:
        def check(server: Server, send: Send, _: Send) -> None:
            server.close()
            self.assertIsInstance(send(), Unsent)

        self.each(lambda _: OK, check)

    def test_a_watch_is_a_stream_of_lines(self) -> None:
        def check(_: Server, __: Send, watch: Send) -> None:
            self.assertEqual(watch(), [b'{"a":1}\n', b'{"a":2}\n'])

        self.each(lambda _: LINES, check)

    def test_an_answer_does_not_grow_without_bound(self) -> None:
        endless = b"HTTP/1.1 200 OK\r\ncontent-length: 5000000\r\n\r\n" + b" " * 5_000_000

        def check(_: Server, send: Send, __: Send) -> None:
            got = send()
            assert isinstance(got, Lost)
            self.assertIn("more than", str(got.cause))

        self.each(lambda _: endless, check)

    def test_a_line_does_not_grow_without_bound(self) -> None:
        endless = b"HTTP/1.1 200 OK\r\ncontent-length: 2000000\r\n\r\n" + b" " * 2_000_000

        def check(_: Server, __: Send, watch: Send) -> None:
            with self.assertRaisesRegex(Exception, "a line of more than"):
                watch()

        self.each(lambda _: endless, check)

    def test_calls_of_asyncio_wait_for_a_connection(self) -> None:
        server = Server(lambda _: OK)

        async def many() -> list[Outcome]:
            transport = AsyncTransport([server.address])
            transport._slots = [asyncio.Semaphore(1)]
            got = await asyncio.gather(*(transport.send(0, POST, ASK, Sending()) for _ in range(5)))
            transport.close()
            return got

        self.assertEqual(asyncio.run(many()), [Done({"tokens": 1})] * 5)
        self.assertEqual(server.connections, 1)
        server.close()

    def test_a_blocking_call_is_canceled_from_another_thread(self) -> None:
        hang = threading.Event()

        def silent(_: int) -> bytes:
            hang.wait(FAR)
            return b""

        server = Server(silent)
        cancel = samya.Cancel()
        client = samya.Client([f"http://127.0.0.1:{server.address.port}"])
        threading.Thread(target=lambda: (server.asked.wait(), cancel.cancel()), daemon=True).start()
        with self.assertRaises(samya.OutcomeUnknownError) as caught:
            client.acquire("acme/vm", 1, cancel=cancel)
        self.assertIsNotNone(caught.exception.resume)
        hang.set()
        client.close()
        server.close()


if __name__ == "__main__":
    unittest.main()
