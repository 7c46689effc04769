"""What a client knows of its targets, and the order in which a call asks them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

from ._outcome import Done, Outcome, Refused, Unsent

# A target that refused a call as overloaded is passed over for as long as it asks for,
# within these bounds; for _OVERLOAD_UNSAID if it does not say. All are seconds.
_LEAST_OVERLOAD, _MOST_OVERLOAD, _OVERLOAD_UNSAID = 0.05, 5.0, 1.0

# A target that broke a connection, or could not be reached, is passed over for _FIRST_DOWN,
# then twice as long each time up to _MOST_DOWN.
_FIRST_DOWN, _MOST_DOWN = 0.1, 5.0

# A pause is made when all targets were asked in vain; each is twice as long as the pause
# before, up to _LONGEST_PAUSE.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.025, 2.0

_GOOD, _OVERLOADED, _DOWN = range(3)


@dataclass
class _Health:
    fails: int = 0  # in a row
    down_until: float = -math.inf
    overloaded_until: float = -math.inf


class Targets:
    """What a client knows of its targets, by the outcomes of tries. Times are handed in.

    Calls of several threads may share it.
    """

    def __init__(self, count: int, random: Callable[[], float]) -> None:
        self.count = count
        self.random = random
        self._health = [_Health() for _ in range(count)]
        self._lock = threading.Lock()

    def _rank(self, h: _Health, now: float) -> int:
        if now < h.down_until:
            return _DOWN
        return _OVERLOADED if now < h.overloaded_until else _GOOD

    def order(self, now: float) -> list[tuple[int, bool]]:
        """The targets, best first, and whether each is down; equal targets stay as configured."""
        with self._lock:
            ranks = [self._rank(h, now) for h in self._health]
        return [(i, ranks[i] == _DOWN) for i in sorted(range(self.count), key=ranks.__getitem__)]

    def begin(self, i: int, now: float) -> None:
        """Notes that a try begins: of many calls a single call tries a target that was down."""
        with self._lock:
            h = self._health[i]
            if h.fails > 0 and now >= h.down_until:
                h.down_until = now + self._down_for(h.fails)

    def learn(self, i: int, outcome: Outcome, now: float, took: float, patience: float) -> None:
        """Records the outcome of a try that took a time, with `patience` for the answer."""
        with self._lock:
            h = self._health[i]
            if isinstance(outcome, (Done, Refused)):
                h.fails, h.down_until = 0, -math.inf
                if isinstance(outcome, Done):
                    return
                if outcome.refusal.details.reason == "OVERLOADED":
                    asked = outcome.refusal.details.retry_after or _OVERLOAD_UNSAID
                    h.overloaded_until = now + min(max(asked, _LEAST_OVERLOAD), _MOST_OVERLOAD)
                if outcome.refusal.details.reason != "SHUTTING_DOWN":
                    return
            elif outcome.silent and (isinstance(outcome, Unsent) or took < patience):
                # A short time of the caller says nothing of the target, and neither does a
                # request that waited for a connection of this client.
                return
            h.fails += 1
            h.down_until = now + self._down_for(h.fails)

    def _down_for(self, fails: int) -> float:
        return min(_FIRST_DOWN * 2.0 ** min(fails - 1, 10), _MOST_DOWN) * (0.5 + self.random() / 2)


class Tour:
    """Goes through the targets, best first, again and again."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._order: list[tuple[int, bool]] = []
        self._following = 0
        self._round = 0
        # The longest advice in this round of when to try again, in seconds.
        self._retry_after = 0.0

    def start(self, now: float) -> None:
        """Begins a round."""
        self._order = self._targets.order(now)
        self._following = 0
        self._retry_after = 0.0

    def next(self) -> tuple[int, bool] | None:
        """The next target of the round, and whether a target that is not down follows.

        None at the end of the round. Targets that are down are asked only if there is no other.
        """
        if self._following == len(self._order):
            return None
        target, down = self._order[self._following]
        if self._following > 0 and down and not self._order[0][1]:
            return None
        self._following += 1
        return target, self._following < len(self._order) and not self._order[self._following][1]

    def advised(self, retry_after: float) -> None:
        self._retry_after = max(self._retry_after, retry_after)

    def pause(self) -> float:
        """How long to pause before the next round, in seconds."""
        d = min(_FIRST_PAUSE * 2.0 ** min(self._round, 10), _LONGEST_PAUSE)
        self._round += 1
        return max(d * (0.5 + self._targets.random() / 2), self._retry_after)
