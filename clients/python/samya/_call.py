"""The decisions of a call, without a clock, a network or random numbers of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

from ._movement import Decider
from ._outcome import Done, Outcome, Over
from ._targets import Targets, Tour
from .errors import SamyaError


@dataclass(frozen=True)
class Now:
    """A time: by a clock that never goes back, and since the Unix epoch. Seconds."""

    mono: float
    wall: float


@dataclass(frozen=True)
class Try:
    """Ask a target; the try ends at `by`, by the clock that never goes back."""

    target: int
    by: float


@dataclass(frozen=True)
class Pause:
    """Wait, then call `resumed`."""

    seconds: float


@dataclass(frozen=True)
class End:
    """The call has its answer."""

    body: Any


@dataclass(frozen=True)
class Fail:
    """The call has failed."""

    error: SamyaError


Step = Union[Try, Pause, End, Fail]


class Call:
    """A call from its beginning to its outcome.

    Asked what to do next, it answers with a step, and is told what became of the step. The
    same outcomes at the same times lead to the same steps.
    """

    def __init__(self, decider: Decider, targets: Targets, deadline: float, try_time: float, repeat_time: float) -> None:
        self._decider = decider
        self._targets = targets
        self._deadline = deadline
        self._try_time = try_time
        self._repeat_time = repeat_time
        self._tour = Tour(targets)
        # The try under way.
        self._target = 0
        self._begun = 0.0

    def begin(self, now: Now) -> Step:
        """The first step."""
        self._decider.expire(now.wall + (self._deadline - now.mono) + self._repeat_time)
        return self.resumed(now)

    def resumed(self, now: Now) -> Step:
        """The step after a pause."""
        self._tour.start(now.mono)
        return self._step(now)

    def told(self, outcome: Outcome, now: Now, over: Over | None = None) -> Step:
        """The step after a try; `over` tells that somebody has ended the call."""
        settled = self._decider.judge(outcome)
        if over is None or isinstance(outcome, Done):
            patience = self._decider.wait + self._try_time
            self._targets.learn(self._target, outcome, now.mono, now.mono - self._begun, patience)
        if isinstance(outcome, Done):
            return End(outcome.body)
        if settled:
            return self.fail()
        refusal = self._decider.refusal
        self._tour.advised(refusal.details.retry_after if refusal is not None else 0.0)
        if over is None and now.mono >= self._deadline:
            over = Over("deadline")
        if over is not None or self._decider.spent(now.wall):
            return self.fail(over)
        return self._step(now)

    def fail(self, over: Over | None = None) -> Fail:
        """The last step of a call that ends while it pauses."""
        return Fail(self._decider.final(over))

    def _step(self, now: Now) -> Step:
        following = self._tour.next()
        if following is None:
            seconds = self._tour.pause()
            if now.mono + seconds >= self._deadline:
                # The next round would begin too late: the caller had better hear now.
                return self.fail(Over("deadline") if now.mono >= self._deadline else None)
            return Pause(seconds)
        self._target, more = following
        self._begun = now.mono
        self._targets.begin(self._target, now.mono)
        own = now.mono + self._decider.wait + self._try_time
        return Try(self._target, min(own, self._deadline) if more else self._deadline)
