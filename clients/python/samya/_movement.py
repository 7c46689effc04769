"""How the outcomes of tries decide an acquire or a release."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Protocol

from ._outcome import Done, Lost, Outcome, Over, Refusal, Refused, cause_of, ended, unreachable
from .errors import Details, ResumePoint, SamyaError, error_of

#: The highest number of an attempt.
MAX_ATTEMPT = (1 << 20) - 1

#: Reasons which tell that nothing of an attempt was done, so that it can be made again.
AGAIN = frozenset(
    {
        "OVERLOADED",
        "RATE_LIMITED",
        "QUEUE_FULL",
        "SHUTTING_DOWN",
        "SITE_UNAVAILABLE",
        "DEADLINE_EXCEEDED",
        "SITE_DRAINING",
        "LEASE_MOVED",
    }
)

#: Reasons which hold for all attempts of an acquire or a release.
_SETTLING = frozenset({"OUT_OF_TOKENS", "EXCEEDS_LIMIT", "SUPERSEDED", "LEASE_NOT_FOUND"})

#: Reasons which refuse a resumed attempt itself.
_OF_THE_ATTEMPT = frozenset({"INVALID_FIELD", "REQUEST_ID_REUSED", "REQUEST_EXPIRED"})


class Decider(Protocol):
    """How the outcomes of tries decide a request; it knows neither targets nor a clock."""

    #: How long a target may wait before it answers, in seconds.
    wait: float
    #: The refusal of the last try; None after another outcome.
    refusal: Refusal | None

    def expire(self, wall: float) -> None:
        """Sets the time after which no site may execute the request, unless it is set."""
        ...

    def next(self) -> Mapping[str, Any]:
        """The members to add to the body of the next try."""
        ...

    def judge(self, outcome: Outcome) -> bool:
        """Records the outcome of a try, and reports whether the request is settled."""
        ...

    def spent(self, wall: float) -> bool:
        """Whether no further try can be made at a time, in seconds since the Unix epoch."""
        ...

    def final(self, over: Over | None = None) -> SamyaError:
        """The error of a request that failed as its last try did, or that is over."""
        ...


class Movement:
    """An acquire, of a single entity or of several, or a release, on its way to an answer.

    After a try that may have been done, the next try is a further attempt of the same request:
    it counts up, and names the sites that may have done earlier attempts. With these the sites
    undo whatever was done twice, and only the answer of the latest attempt counts.
    """

    def __init__(
        self, request_id: str, entity: str, wait: float = 0.0, dry: bool = False, resume: ResumePoint | None = None
    ) -> None:
        self.id = request_id
        self.wait = wait
        self.refusal: Refusal | None = None
        self._entity = entity
        # A dry run moves nothing: its outcome does not matter.
        self._dry = dry
        # In milliseconds since the Unix epoch; 0 until it is set.
        self._not_after = 0
        # The number of the next attempt, from 1.
        self._attempt = 1
        self._tried: list[str] = []
        # Sites that are not known may have done earlier attempts too.
        self._anywhere = False
        # A try of this call may have been done, and its attempt is not settled.
        self._indeterminate = False
        self._last: Details | None = None
        if resume is not None:
            self.id = resume.request_id
            self._attempt = resume.attempt
            self._not_after = resume.not_after_ms
            self._tried = list(resume.tried)
            self._anywhere = not resume.tried

    def expire(self, wall: float) -> None:
        if self._not_after == 0:
            self._not_after = math.floor(wall * 1000)

    def next(self) -> Mapping[str, Any]:
        more: dict[str, Any] = {"request_id": self.id}
        if not self._dry:
            more["not_after"] = _rfc3339(self._not_after)
        if self._attempt > 1:
            more["attempt"] = self._attempt
            if not self._anywhere and self._tried:
                more["tried"] = list(self._tried)
        return more

    def judge(self, outcome: Outcome) -> bool:
        self.refusal = None
        if isinstance(outcome, Done):
            self._last = None
            return True
        if isinstance(outcome, Refused):
            return self._refused(outcome.refusal)
        if isinstance(outcome, Lost):
            self._may_have_run(())
            self._last = Details("OUTCOME_UNKNOWN", cause=outcome.cause)
            return False
        self._last = unreachable(outcome.cause)
        return False

    def _refused(self, r: Refusal) -> bool:
        self.refusal = r
        self._last = r.details
        if r.details.reason in AGAIN:
            return False
        if r.details.reason in ("OUTCOME_UNKNOWN", "CANCELED", "INTERNAL"):
            following = max(self._attempt + 1, r.attempt)
            if r.attempt > 0:
                self._may_have_run(r.tried)
            else:
                self._may_have_run((r.details.site,) if r.details.site else ())
            if not self._dry:
                self._attempt = following
            return False
        return True

    def _may_have_run(self, sites: tuple[str, ...]) -> None:
        """Notes that the last try may have been done at the sites; none stands for any site."""
        if self._dry:
            return
        self._attempt += 1
        self._indeterminate = True
        if not sites:
            self._anywhere = True
        self._tried.extend(s for s in sites if s not in self._tried)

    def spent(self, wall: float) -> bool:
        return self._attempt > MAX_ATTEMPT or wall * 1000 > self._not_after

    def final(self, over: Over | None = None) -> SamyaError:
        e = self._last
        if self._dry and over is not None:
            e = ended(over)
        elif not self._settles(e):
            e = self._unknown(cause_of(over, e))
        elif over is not None and (over.kind != "deadline" or e is None or e.reason == "DEADLINE_EXCEEDED"):
            # Why the call is over tells more than a try that did nothing.
            e = ended(over)
        return named(e, self.id, self._entity)

    def _settles(self, e: Details | None) -> bool:
        """Whether ending with e leaves nothing open."""
        if not self._indeterminate and self._attempt == 1:
            return True
        if e is None:
            return False
        return not self._indeterminate if e.reason in _OF_THE_ATTEMPT else e.reason in _SETTLING

    def _unknown(self, cause: BaseException) -> Details:
        """The error that tells how to go on."""
        return Details(
            "OUTCOME_UNKNOWN",
            f'the request may or may not have been done; resume "{self.id}" as attempt {self._attempt} to find out',
            entity=self._entity,
            site=self._last.site if self._last is not None else "",
            cause=cause,
            resume=ResumePoint(self.id, self._attempt, self._not_after, () if self._anywhere else tuple(self._tried)),
        )


def named(e: Details | None, request_id: str, entity: str) -> SamyaError:
    """The error for the caller, with the id and the entity of the call."""
    d = e if e is not None else Details("INTERNAL")
    return error_of(replace(d, request_id=d.request_id or request_id, entity=d.entity or entity))


def _rfc3339(ms: int) -> str:
    at = datetime.fromtimestamp(ms // 1000, timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S") + f".{ms % 1000:03d}Z"
