"""The decisions of a call, by the tables of clients/conformance, which all clients share."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import Any

from samya import ResumePoint
from samya._call import Call, End, Fail, Now, Pause, Step, Try
from samya._movement import Decider, Movement
from samya._outcome import Done, Lost, Outcome, Over, Refusal, Refused, Unsent
from samya._question import Question
from samya._targets import Targets
from samya.errors import Details

TABLES = Path(__file__).resolve().parents[2] / "conformance"


def table(name: str) -> Any:
    return json.loads((TABLES / name).read_text())


def outcome(t: dict[str, Any]) -> Outcome:
    if t["kind"] == "done":
        return Done({})
    if t["kind"] == "unsent":
        return Unsent(OSError("refused"), silent=t.get("silent", False))
    if t["kind"] == "lost":
        return Lost(OSError("broken"), silent=t.get("silent", False))
    details = Details(t["reason"], site=t.get("site", ""), retry_after=t.get("retry_after_ms", 0) / 1000)
    return Refused(Refusal(details, t.get("attempt", 0), tuple(t.get("tried", ()))))


def over(kind: Any) -> Over | None:
    return None if kind is None else Over(kind)


def decider(d: dict[str, Any]) -> Decider:
    if d["kind"] == "read":
        return Question("acme/vm")
    if d["kind"] == "change":
        return Question("acme/vm", "id-1", moves=True)
    resume = d.get("resume")
    if resume is not None:
        resume = ResumePoint("id-1", resume["attempt"], 5000, tuple(resume["tried"]))
    return Movement("id-1", "acme/vm", dry=d["kind"] == "dry", resume=resume)


class Decisions(unittest.TestCase):
    def test_table(self) -> None:
        for d in table("decisions.json"):
            with self.subTest(d["name"]):
                self.decide(d)

    def decide(self, d: dict[str, Any]) -> None:
        m = decider(d)
        m.expire(5.0)
        for t in d["tries"]:
            sent = dict(m.next())
            self.assertEqual(sent.pop("request_id", None), None if d["kind"] == "read" else "id-1")
            moves = d["kind"] in ("acquire", "release")
            self.assertEqual(sent.pop("not_after", None), "1970-01-01T00:00:05.000Z" if moves else None)
            self.assertEqual(sent, t["sent"])
            self.assertEqual(m.judge(outcome(t["outcome"])), t["settled"])
        if "final" not in d:
            return
        e = m.final(over(d.get("over")))
        self.assertEqual(e.reason, d["final"]["reason"])
        self.assertEqual(e.entity, "acme/vm")
        want = d["final"].get("resume")
        if want is not None:
            want = ResumePoint("id-1", want["attempt"], 5000, tuple(want["tried"]))
        self.assertEqual(e.resume, want)


class Calls(unittest.TestCase):
    def test_table(self) -> None:
        for c in table("calls.json"):
            with self.subTest(c["name"]):
                self.play(c)

    def play(self, c: dict[str, Any]) -> None:
        now = 0.0
        resume = c.get("resume")
        if resume is not None:
            resume = ResumePoint("id-1", resume["attempt"], resume["not_after_ms"], tuple(resume["tried"]))
        m = Movement("id-1", "acme/vm", c["wait_ms"] / 1000, resume=resume)
        call = Call(m, Targets(c["targets"], lambda: 0.5), c["deadline_ms"] / 1000, 2.0, 60.0)
        step = call.begin(Now(now, now))
        for i, s in enumerate(c["steps"]):
            self.shows(step, s["want"], f"step {i + 1}")
            now += s.get("after_ms", 0) / 1000
            if isinstance(step, Pause):
                now += step.seconds
                step = call.resumed(Now(now, now))
            elif "outcome" in s:
                step = call.told(outcome(s["outcome"]), Now(now, now), over(s.get("over")))

    def shows(self, step: Step, want: dict[str, Any], at: str) -> None:
        if isinstance(step, Try):
            self.assertEqual(step.target, want.get("try"), at)
            self.assertAlmostEqual(step.by * 1000, want["by_ms"], msg=at)
        elif isinstance(step, Pause):
            self.assertIn("pause_ms", want, at)
            self.assertAlmostEqual(step.seconds * 1000, want["pause_ms"], msg=at)
        elif isinstance(step, End):
            self.assertEqual({"end": True}, want, at)
        else:
            assert isinstance(step, Fail)
            self.assertEqual({"fail": step.error.reason}, want, at)


if __name__ == "__main__":
    unittest.main()
