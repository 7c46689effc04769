"""How the outcomes of tries decide a call that may be repeated as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._movement import AGAIN, named
from ._outcome import Done, Lost, Outcome, Over, Refusal, Unsent, cause_of, ended, unreachable
from .errors import Details, SamyaError

#: Reasons which hold for all tries of a change that names its id.
_SETTLING_CHANGE = frozenset(
    {
        "ENTITY_EXISTS",
        "VERSION_MISMATCH",
        "HAS_CHILDREN",
        "PARENT_NOT_FOUND",
        "REQUEST_ID_REUSED",
        "LEASE_NOT_FOUND",
        "MEMBER_STATE",
    }
)


class Question:
    """A call that may be repeated as it is without harm: a read, or a change with an id."""

    def __init__(self, entity: str, request_id: str = "", wait: float = 0.0, moves: bool = False) -> None:
        self.wait = wait
        self.refusal: Refusal | None = None
        self._entity = entity
        self._id = request_id
        # The call changes something, so that a lost answer matters.
        self._moves = moves
        # An earlier try may have been done.
        self._lost = False
        self._last: Details | None = None

    def expire(self, wall: float) -> None:
        """A question has no last time of execution."""

    def spent(self, wall: float) -> bool:
        return False

    def next(self) -> Mapping[str, Any]:
        return {"request_id": self._id} if self._id else {}

    def judge(self, outcome: Outcome) -> bool:
        self.refusal = None
        if isinstance(outcome, Done):
            self._last = None
            return True
        if isinstance(outcome, (Lost, Unsent)):
            self._lost = self._lost or isinstance(outcome, Lost)
            self._last = unreachable(outcome.cause)
            return False
        self.refusal = outcome.refusal
        self._last = outcome.refusal.details
        reason = self._last.reason
        if reason in AGAIN:
            return False
        if reason in ("OUTCOME_UNKNOWN", "CANCELED"):
            self._lost = True
            return False
        if reason == "INTERNAL":
            # A change may have been made before the error.
            self._lost = True
            return not self._moves
        return True

    def final(self, over: Over | None = None) -> SamyaError:
        e = self._last
        if self._moves and self._lost and (over is not None or e is None or e.reason not in _SETTLING_CHANGE):
            e = Details(
                "OUTCOME_UNKNOWN",
                "it may or may not have been done; a repeat with the same request id does no harm",
                cause=cause_of(over, e),
            )
        elif over is not None and (over.kind != "deadline" or e is None):
            e = ended(over)
        return named(e, self._id, self._entity)
