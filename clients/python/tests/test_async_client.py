"""The client for asyncio, over a fake transport and clock. Its decisions are the other's."""

from __future__ import annotations

import asyncio
import unittest
from typing import Any

import samya
from samya._outcome import Done

from .fakes import LOST, UNSENT, Broken, async_client, granted, refused
from .test_client import LEASE, state


class Moves(unittest.IsolatedAsyncioTestCase):
    async def test_a_lost_answer_is_repeated_as_a_further_attempt(self) -> None:
        c, transport, _ = async_client(lambda s: LOST if s.target == 0 else granted(3))
        self.assertEqual(await c.acquire("acme/vm", 3), samya.Grant(3, 7, "us", "id"))
        self.assertEqual({**transport.sent[0].body, "attempt": 2}, transport.sent[1].body)

    async def test_an_unsent_request_is_repeated_as_it_was(self) -> None:
        c, transport, _ = async_client(lambda s: UNSENT if s.target == 0 else granted(3))
        await c.release("acme/vm", 3)
        self.assertEqual(transport.sent[0].body, transport.sent[1].body)

    async def test_a_canceled_task_tells_what_became_of_its_call(self) -> None:
        asked = asyncio.Event()

        async def hang() -> None:
            asked.set()
            await asyncio.Event().wait()

        c, _, _ = async_client(lambda _: hang())  # type: ignore[arg-type, return-value]
        task = asyncio.ensure_future(c.acquire("acme/vm", 3))
        await asked.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError) as caught:
            await task
        told = samya.error_behind(caught.exception)
        assert isinstance(told, samya.OutcomeUnknownError) and told.resume is not None
        self.assertEqual(told.resume.attempt, 2)
        self.assertIsNone(samya.error_behind(asyncio.CancelledError()))

    async def test_a_closed_client_ends_its_calls(self) -> None:
        asked = asyncio.Event()

        async def hang() -> None:
            asked.set()
            await asyncio.Event().wait()

        c, transport, _ = async_client(lambda _: hang())  # type: ignore[arg-type, return-value]
        call = asyncio.ensure_future(c.entity("acme/vm"))
        await asked.wait()
        await c.close()
        with self.assertRaises(samya.ClosedError):
            await call
        with self.assertRaises(samya.ClosedError):
            await c.release("acme/vm", 1)
        self.assertTrue(transport.closed)
        self.assertEqual(c._waiting, set())

    async def test_a_call_without_an_answer_ends_at_its_deadline(self) -> None:
        c, transport, time = async_client(lambda _: refused("SITE_UNAVAILABLE", retry_after=1.0))
        with self.assertRaises(samya.UnavailableError):
            await c.acquire("acme/vm", 1, timeout=3.5)
        self.assertEqual(len(transport.sent), 8)
        self.assertEqual(time.mono, 3)


class Leases(unittest.IsolatedAsyncioTestCase):
    async def test_a_kept_lease_is_renewed_and_its_loss_told(self) -> None:
        def answer(s: Any) -> Any:
            if s.request.path.endswith(":acquire"):
                return granted(3, lease=LEASE)
            return refused("LEASE_NOT_FOUND") if len(transport.sent) == 7 else Done(LEASE)

        c, transport, time = async_client(answer)
        lost: asyncio.Future[samya.SamyaError] = asyncio.get_running_loop().create_future()
        lease = await c.acquire_lease("acme/vm", 3, 3.0)
        async with lease.keep(lost.set_result) as kept:
            self.assertIsInstance(await lost, samya.LeaseNotFoundError)
            with self.assertRaises(samya.LeaseNotFoundError):
                kept.check()
        self.assertEqual(time.mono, 6)

    async def test_a_stopped_keeper_and_a_closed_client(self) -> None:
        def answer(s: Any) -> Any:
            return granted(3, lease=LEASE) if s.request.path.endswith(":acquire") else Done(LEASE)

        c, _, _ = async_client(answer)
        lease = await c.acquire_lease("acme/vm", 3, 3.0)
        async with lease.keep() as kept:
            await asyncio.sleep(0)
        self.assertIsNone(kept.lost)
        lost: asyncio.Future[samya.SamyaError] = asyncio.get_running_loop().create_future()
        lease.keep(lost.set_result)
        await c.close()
        self.assertIsInstance(await lost, samya.ClosedError)


class Watches(unittest.IsolatedAsyncioTestCase):
    async def test_a_broken_watch_goes_on_after_its_last_state(self) -> None:
        streams = [Broken(state(1, "t1"), state(2, "t2")), [state(3, "t3"), state(0, "t4", True)]]
        c, transport, _ = async_client(lambda _: streams[len(transport.sent) - 1])
        self.assertEqual([s.limit async for s in c.watch("acme/vm")], [1, 2, 3, 0])
        self.assertEqual([s.target for s in transport.sent], [0, 1])
        self.assertEqual(transport.sent[1].request.path, "/v1/entities/acme/vm:watch?resume_token=t2")
        self.assertTrue(all(s.closed for s in transport.streams))

    async def test_a_problem_ends_the_watch(self) -> None:
        c, _, _ = async_client(lambda _: [state(1, "t1"), {"problem": {"reason": "PERMISSION_DENIED"}}])
        with self.assertRaises(samya.PermissionDeniedError):
            async for s in c.watch("acme/vm"):
                self.assertEqual(s.limit, 1)

    async def test_a_closed_client_ends_its_watch(self) -> None:
        c, _, _ = async_client(lambda _: [state(1, "t1")])
        watching = c.watch("acme/vm")
        self.assertEqual((await watching.__anext__()).limit, 1)
        await c.close()
        with self.assertRaises(samya.ClosedError):
            await watching.__anext__()


if __name__ == "__main__":
    unittest.main()
