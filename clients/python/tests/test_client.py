"""The blocking client, over a fake transport and clock."""

from __future__ import annotations

import json
import re
import tempfile
import unittest
from typing import Any

import samya
from samya._options import token_file
from samya._outcome import Done, outcome_of
from samya._requests import new_id

from .fakes import LOST, TARGETS, UNSENT, WALL, Broken, FakeTime, client, granted, refused

LEASE = {"name": "us/id", "entity": "acme/vm", "tokens": 3, "remaining_ms": 3000, "holder": ""}


def state(limit: int, token: str, deleted: bool = False) -> dict[str, Any]:
    return {"name": "acme/vm", "limit": limit, "version": 1, "deleted": deleted, "resume_token": token}


class Moves(unittest.TestCase):
    def test_a_lost_answer_is_repeated_as_a_further_attempt(self) -> None:
        c, transport, _ = client(lambda s: LOST if s.target == 0 else granted(3))
        self.assertEqual(c.acquire("acme/vm", 3), samya.Grant(3, 7, "us", "id"))
        first, second = transport.sent
        self.assertEqual(first.request.path, "/v1/entities/acme/vm:acquire")
        self.assertEqual({**first.body, "attempt": 2}, second.body)
        self.assertRegex(first.body["request_id"], r"^[0-9A-Z]{26}$")
        # Ten seconds for the call, five for the wait, and a minute to find out.
        self.assertEqual(first.body["not_after"], "2023-11-14T22:14:35.000Z")

    def test_an_unsent_request_is_repeated_as_it_was(self) -> None:
        c, transport, _ = client(lambda s: UNSENT if s.target == 0 else granted(3))
        c.release("acme/vm", 3)
        self.assertEqual(transport.sent[0].body, transport.sent[1].body)

    def test_a_refusal_is_an_error_of_its_class(self) -> None:
        c, _, _ = client(lambda _: refused("OUT_OF_TOKENS", left=2, retry_after=0.5, lacking="acme", site="us"))
        with self.assertRaises(samya.OutOfTokensError) as caught:
            c.acquire("acme/vm", 3)
        e = caught.exception
        self.assertEqual((e.left, e.retry_after, e.lacking, e.site, e.entity), (2, 0.5, "acme", "us", "acme/vm"))

    def test_the_time_of_the_call_bounds_the_wait(self) -> None:
        c, transport, _ = client(lambda _: granted(1))
        c.acquire("acme/vm", 1)
        c.acquire("acme/vm", 1, timeout=1)
        c.acquire("acme/vm", 1, timeout=1, wait=0)
        c.acquire("acme/vm", 1, wait=1.5)
        self.assertEqual([s.body.get("wait") for s in transport.sent], [None, "900000us", "0us", "1500000us"])

    def test_an_unknown_outcome_is_resumed_also_by_another_process(self) -> None:
        c, transport, _ = client(lambda _: LOST)
        with self.assertRaises(samya.OutcomeUnknownError) as caught:
            c.release("acme/vm", 3, timeout=1)
        point = caught.exception.resume
        assert point is not None
        kept = samya.ResumePoint.from_dict(json.loads(json.dumps(point.to_dict())))
        self.assertEqual(kept, point)
        transport.answer = lambda _: granted(3)
        for resume in (caught.exception, kept):
            c.release("acme/vm", 3, resume=resume)
            self.assertEqual(transport.sent[-1].body["attempt"], point.attempt)
            self.assertEqual(transport.sent[-1].body["request_id"], transport.sent[0].body["request_id"])
            self.assertEqual(transport.sent[-1].body["not_after"], transport.sent[0].body["not_after"])
        with self.assertRaises(samya.InvalidError):
            c.release("acme/vm", 3, resume=samya.UnavailableError(samya.errors.Details("SITE_UNAVAILABLE")))

    def test_a_canceled_call_ends_at_once(self) -> None:
        cancel = samya.Cancel()

        def answer(_: Any) -> Any:
            cancel.cancel()
            return LOST

        c, transport, _ = client(answer)
        with self.assertRaises(samya.OutcomeUnknownError) as caught:
            c.acquire("acme/vm", 3, cancel=cancel)
        self.assertEqual(caught.exception.resume and caught.exception.resume.attempt, 2)
        with self.assertRaises(samya.CanceledError):
            c.acquire("acme/vm", 3, cancel=cancel)
        self.assertEqual(len(transport.sent), 1)

    def test_a_closed_client(self) -> None:
        c, transport, _ = client(lambda _: granted(1))
        with c:
            pass
        with self.assertRaises(samya.ClosedError):
            c.release("acme/vm", 3)
        self.assertTrue(transport.closed)

    def test_several_entities_are_a_single_request(self) -> None:
        done = Done({"results": [], "request_id": "id", "site": "us"})
        c, transport, _ = client(lambda s: LOST if s.target == 0 else done)
        self.assertEqual(c.acquire_all([("a", 1), ("b", 2)], wait=0), samya.AllGrant("us", "id"))
        self.assertEqual(transport.sent[1].request.path, "/v1/batch")
        self.assertEqual(transport.sent[1].body["attempt"], 2)
        self.assertEqual(
            transport.sent[1].body["operations"],
            [{"acquire": {"entity": "a", "tokens": 1}}, {"acquire": {"entity": "b", "tokens": 2}}],
        )

    def test_reads_and_changes(self) -> None:
        entity = {"name": "a/b", "limit": 5, "version": 2, "in_transit": None, "missing_sites": ["eu"]}
        c, transport, _ = client(lambda s: Done({} if s.request.method == "DELETE" else entity))
        self.assertIsNone(c.entity("a/b", consistency="bounded", max_age=5).in_transit)
        self.assertEqual(c.set_limit("a/b", 5, request_id="id-1"), samya.LimitChange(5, 2, 0, ("eu",)))
        c.create_entity("a/b", 5, parent="a", request_id="id-2")
        c.move_entity("a/b", "", request_id="id-3")
        c.delete_entity("a/b", subtree=True, request_id="id-4")
        self.assertEqual(
            [(s.request.method, s.request.path, s.body) for s in transport.sent],
            [
                ("GET", "/v1/entities/a/b?consistency=bounded&max_age=5000000us", {}),
                ("PATCH", "/v1/entities/a/b", {"limit": 5, "request_id": "id-1"}),
                ("POST", "/v1/entities", {"name": "a/b", "limit": 5, "parent": "a", "request_id": "id-2"}),
                ("POST", "/v1/entities/a/b:move", {"parent": "", "request_id": "id-3"}),
                ("DELETE", "/v1/entities/a/b?subtree=true&request_id=id-4", {}),
            ],
        )

    def test_arguments_that_cannot_be_sent(self) -> None:
        c, transport, _ = client(lambda _: granted(1))
        bad: list[tuple[str, Any, dict[str, Any], str]] = [
            ("acme/vm", 1.5, {}, "tokens"),
            ("acme/vm", True, {}, "tokens"),
            ("acme/vm", 2**53, {}, "tokens"),
            ("acme/vm", 1, {"wait": float("nan")}, "wait"),
            ("acme/vm", 1, {"wait": 1e12}, "wait"),
            ("acme/vm", 1, {"timeout": 0}, "timeout"),
            ("acme/vm", 1, {"timeout": float("inf")}, "timeout"),
            ("a/../b", 1, {}, "name"),
            (".", 1, {}, "name"),
            ("a:watch", 1, {}, "name"),
        ]
        for entity, tokens, more, field in bad:
            with self.subTest(entity=entity, tokens=tokens), self.assertRaises(samya.InvalidError) as caught:
                c.acquire(entity, tokens, **more)
            self.assertEqual(caught.exception.violations[0].field, field)
        self.assertEqual(transport.sent, [])
        c.acquire("a b?/%#", 1)
        self.assertEqual(transport.sent[0].request.path, "/v1/entities/a%20b%3F/%25%23:acquire")


class Leases(unittest.TestCase):
    def keep(self, answer: Any, **options: Any) -> tuple[Any, ...]:
        def first(s: Any) -> Any:
            return granted(3, lease=LEASE) if s.request.path.endswith(":acquire") else answer(s)

        c, transport, time = client(first, **options)
        lease = c.acquire_lease("acme/vm", 3, 3.0, holder="job")
        self.assertEqual(transport.sent[0].body["lease"], {"ttl": "3000000us", "holder": "job"})
        self.assertEqual(lease.expires, WALL + 3)
        return c, transport, time, lease

    def test_a_kept_lease_is_renewed_thrice_in_its_time(self) -> None:
        times: list[float] = []

        def answer(s: Any) -> Any:
            times.append(time.mono)
            if len(times) == 6:
                return refused("LEASE_NOT_FOUND")
            return Done(LEASE)

        _, transport, time, lease = self.keep(answer)
        told: list[samya.SamyaError] = []
        kept = lease.keep(told.append)
        kept._thread.join()
        self.assertEqual(times, [1, 2, 3, 4, 5, 6])
        self.assertEqual(transport.sent[1].body, {"lease": "us/id", "ttl": "3000000us"})
        self.assertIsInstance(kept.lost, samya.LeaseNotFoundError)
        self.assertEqual(told, [kept.lost])
        with self.assertRaises(samya.LeaseNotFoundError):
            kept.check()

    def test_a_lease_that_cannot_be_renewed_is_lost_when_its_time_is_over(self) -> None:
        _, transport, time, lease = self.keep(lambda _: LOST)
        kept = lease.keep()
        kept._thread.join()
        self.assertIsInstance(kept.lost, samya.LeaseNotFoundError)
        self.assertAlmostEqual(time.mono, 3, delta=0.1)
        self.assertGreater(len(transport.sent), 4)

    def test_a_stopped_keeper_and_a_closed_client(self) -> None:
        # The clock stands still: only an end wakes the keeper.
        c, _, _, lease = self.keep(lambda _: Done(LEASE), wait=lambda over, _: over.wait())
        with lease.keep() as kept:
            kept.check()
        self.assertIsNone(kept.lost)
        kept = lease.keep()
        c.close()
        kept._thread.join()
        self.assertIsInstance(kept.lost, samya.ClosedError)

    def test_commits_and_releases(self) -> None:
        def answer(s: Any) -> Any:
            if s.request.path == "/v1/leases:commit":
                return Done({"lease": "us/id", "tokens": 2, "returned": 1})
            return granted(1)

        c, transport, _ = client(answer)
        lease = c.lease_named("us/id", "acme/vm")
        self.assertEqual(lease.commit(2), samya.Committed(2, 1))
        self.assertEqual(lease.release().tokens, 1)
        self.assertNotIn("tokens", transport.sent[1].body)
        self.assertEqual(transport.sent[1].body["lease"], "us/id")


class Watches(unittest.TestCase):
    def test_a_broken_watch_goes_on_after_its_last_state(self) -> None:
        streams = [Broken(state(1, "t1"), state(2, "t2")), [state(3, "t3"), state(0, "t4", True)]]
        c, transport, time = client(lambda _: streams[len(transport.sent) - 1])
        self.assertEqual([s.limit for s in c.watch("acme/vm")], [1, 2, 3, 0])
        self.assertEqual(
            [(s.target, s.request.path) for s in transport.sent],
            [(0, "/v1/entities/acme/vm:watch"), (1, "/v1/entities/acme/vm:watch?resume_token=t2")],
        )
        self.assertEqual(time.mono, 0.05)
        self.assertTrue(all(s.closed for s in transport.streams))

    def test_a_problem_that_no_repeat_heals_ends_the_watch(self) -> None:
        c, _, _ = client(lambda _: [state(1, "t1"), {"problem": {"reason": "UNAUTHENTICATED"}}])
        watching = c.watch("acme/vm")
        self.assertEqual(next(watching).limit, 1)
        with self.assertRaises(samya.UnauthenticatedError):
            next(watching)
        c, _, _ = client(lambda _: refused("ENTITY_NOT_FOUND"))
        with self.assertRaises(samya.EntityNotFoundError):
            next(c.watch("acme/none"))

    def test_streams_that_tell_nothing_are_not_opened_without_rest(self) -> None:
        cancel = samya.Cancel()

        def answer(_: Any) -> Any:
            if len(transport.sent) == 10:
                cancel.cancel()
            return []

        c, transport, time = client(answer)
        with self.assertRaises(samya.CanceledError):
            next(c.watch("acme/vm", cancel=cancel))
        self.assertGreater(time.mono, 5)

    def test_a_left_loop_closes_its_stream(self) -> None:
        c, transport, _ = client(lambda _: [state(1, "t1"), state(2, "t2")])
        watching = c.watch("acme/vm", resume_token="t0")
        self.assertEqual(next(watching).limit, 1)
        watching.close()  # type: ignore[attr-defined]
        self.assertEqual(transport.sent[0].request.path, "/v1/entities/acme/vm:watch?resume_token=t0")
        self.assertTrue(transport.streams[0].closed)


class Settings(unittest.TestCase):
    def test_options_are_checked_each_with_its_bound(self) -> None:
        bad: list[tuple[dict[str, Any], str]] = [
            ({"targets": []}, "at least 1 and at most 128"),
            ({"targets": "http://h"}, "want a list"),
            ({"targets": [f"http://h{i}" for i in range(129)]}, "129"),
            ({"targets": ["127.0.0.1:1"]}, "want http:"),
            ({"targets": ["http://h/path"]}, "want http:"),
            ({"targets": ["http://h", "http://h:80"]}, "given twice"),
            ({"targets": ["http://h"], "token": "t"}, "in clear"),
            ({"targets": ["http://h"], "tls": samya.tls_context()}, "want https"),
            ({"targets": TARGETS, "timeout": 0}, "timeout: 0"),
            ({"targets": TARGETS, "try_time": float("inf")}, "try_time"),
        ]
        for options, text in bad:
            with self.subTest(text), self.assertRaisesRegex(ValueError, re.escape(text)):
                samya.Client(**options)

    def test_a_token_is_shown_and_needed(self) -> None:
        token: list[str] = ["secret"]

        def current() -> str:
            if not token:
                raise FileNotFoundError("no token")
            return token[0]

        c, transport, _ = client(lambda _: granted(1), token=current)
        c.acquire("acme/vm", 1)
        self.assertEqual(transport.sent[0].request.headers["authorization"], "Bearer secret")
        token.clear()
        with self.assertRaises(samya.UnavailableError):
            c.acquire("acme/vm", 1, timeout=0.01)
        self.assertEqual(len(transport.sent), 1)

    def test_the_file_of_a_token_is_read_again(self) -> None:
        time = FakeTime()
        with tempfile.NamedTemporaryFile("w+") as f:
            f.write("first\n")
            f.flush()
            token = token_file(f.name, time.now)
            self.assertEqual(token(), "first")
            f.seek(0)
            f.write("other\n")
            f.flush()
            self.assertEqual(token(), "first")
            time.mono += 10
            self.assertEqual(token(), "other")

    def test_answers_are_judged_by_what_they_prove(self) -> None:
        for status, media, text, kind in [
            (200, "application/json", b'{"tokens":1}', "Done"),
            (200, "application/json", b'{"other":1}', "Lost"),
            (200, "text/html", b"<p>hello</p>", "Lost"),
            (200, "application/json", b"[]", "Lost"),
            (502, "text/html", b"Bad gateway", "Lost"),
            (503, "application/json", b'{"reason":"OVERLOADED"}', "Lost"),
            (503, "application/problem+json; charset=utf-8", b'{"reason":"OVERLOADED"}', "Refused"),
        ]:
            with self.subTest(text):
                self.assertEqual(type(outcome_of(status, media, text, ("tokens",))).__name__, kind)

    def test_ids_are_ulids_in_the_order_of_their_times(self) -> None:
        ids = [new_id(0.001), new_id(0.002), new_id(WALL)]
        self.assertEqual(ids, sorted(ids))
        self.assertRegex(ids[2], r"^01HF7YAT00[0-9A-HJKMNP-TV-Z]{16}$")


if __name__ == "__main__":
    unittest.main()
