"""When a lease is renewed, and when it is lost."""

from __future__ import annotations

# How often a kept lease is renewed within its time to live.
_KEPT_TIMES = 3

# The shortest time between two renewals, in seconds.
_LEAST_PAUSE = 0.01


class Keeper:
    """Decides when a lease is renewed.

    A failed renewal is tried again within the remaining time, until that is over. Times are
    handed in, in seconds.
    """

    def __init__(self, ends: float) -> None:
        self._ends = ends

    def pause(self, now: float) -> float:
        """How long to wait before the next renewal."""
        return max((self._ends - now) / _KEPT_TIMES, _LEAST_PAUSE)

    def left(self, now: float) -> float:
        """How long the next renewal may take; 0: the lease was not renewed in time."""
        return max(0.0, self._ends - now)

    def renewed(self, ends: float) -> None:
        self._ends = ends
