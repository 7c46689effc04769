"""The errors of calls: a class for each reason that callers act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Violation:
    """A field at fault, and the rule or bound that its value breaks."""

    field: str
    problem: str


@dataclass(frozen=True)
class ResumePoint:
    """All that a later call needs to find out an unknown outcome.

    It may be kept anywhere, as `to_dict` gives it, and another process may go on from it.
    """

    request_id: str
    #: The number of the next attempt, above 1.
    attempt: int
    #: The time until which the request can be resumed, in milliseconds since the Unix epoch.
    not_after_ms: int
    #: The sites that may have done the request; none: any site.
    tried: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The point as JSON can hold it."""
        return {
            "request_id": self.request_id,
            "attempt": self.attempt,
            "not_after_ms": self.not_after_ms,
            "tried": list(self.tried),
        }

    @staticmethod
    def from_dict(d: Mapping[str, Any]) -> ResumePoint:
        """The point that `to_dict` gave."""
        return ResumePoint(d["request_id"], d["attempt"], d["not_after_ms"], tuple(d["tried"]))


@dataclass(frozen=True)
class Details:
    """What an error tells."""

    reason: str
    message: str = ""
    entity: str = ""
    request_id: str = ""
    site: str = ""
    lacking: str = ""
    left: int | None = None
    limit: int | None = None
    retry_after: float = 0.0
    violations: Sequence[Violation] = ()
    resume: ResumePoint | None = None
    cause: BaseException | None = None


class SamyaError(Exception):
    """Why a call failed."""

    def __init__(self, d: Details) -> None:
        super().__init__(d.message or d.reason)
        #: The reason's name in the API, such as "OUT_OF_TOKENS".
        self.reason = d.reason
        #: The entity and the request id of the call; empty if it has none.
        self.entity = d.entity
        self.request_id = d.request_id
        #: The site that answered; empty if not known.
        self.site = d.site
        #: The entity that lacked tokens or has too low a limit, unless it is `entity`.
        self.lacking = d.lacking
        #: How many tokens the site can still grant; only with OutOfTokensError.
        self.left = d.left
        #: The exceeded limit; only with ExceedsLimitError.
        self.limit = d.limit
        #: How long to wait before asking again, in seconds; 0: no advice.
        self.retry_after = d.retry_after
        #: The fields at fault, each with the bound that it breaks.
        self.violations = tuple(d.violations)
        #: How to go on; only with OutcomeUnknownError of an acquire or a release.
        self.resume = d.resume
        self.__cause__ = d.cause


class OutOfTokensError(SamyaError):
    """The tokens could not be found within the wait: see `left` and `retry_after`."""


class ExceedsLimitError(SamyaError):
    """More tokens than the limit can never be had: see `limit`."""


class OutcomeUnknownError(SamyaError):
    """The operation may or may not have been done: see `resume`."""


class EntityNotFoundError(SamyaError):
    """There is no entity of that name."""


class EntityExistsError(SamyaError):
    """There is an entity of that name already."""


class ParentNotFoundError(SamyaError):
    """There is no entity of the parent's name."""


class HasChildrenError(SamyaError):
    """Other entities stand below the entity to delete."""


class VersionMismatchError(SamyaError):
    """The entity does not have the expected version."""


class LeaseNotFoundError(SamyaError):
    """There is no such lease, or it has ended."""


class InvalidError(SamyaError):
    """An argument has a forbidden value: `violations` name each field and its bound."""


class RequestIdReusedError(SamyaError):
    """The request id was used before with other arguments."""


class RequestExpiredError(SamyaError):
    """The request was resumed too late, or the clock of this machine is behind."""


class SupersededError(SamyaError):
    """Somebody else has made a later attempt of the same request."""


class UnauthenticatedError(SamyaError):
    """The caller shows no credentials, or none that are good. Nothing was done."""


class PermissionDeniedError(SamyaError):
    """The caller may not do this. Nothing was done."""


class OverloadedError(SamyaError):
    """All targets have more work than they can do in time. Nothing was done."""


class UnavailableError(SamyaError):
    """No target, or none of its sites, could be reached. Nothing was done."""


class DeadlineExceededError(SamyaError):
    """The time of the call was over before anything was done."""


class CanceledError(SamyaError):
    """The caller gave up before anything was done."""


class ClosedError(SamyaError):
    """The client is closed."""


#: The reason of calls at a closed client. It is never sent.
CLOSED = "CLIENT_CLOSED"

_CLASSES: Mapping[str, type[SamyaError]] = {
    "OUT_OF_TOKENS": OutOfTokensError,
    "EXCEEDS_LIMIT": ExceedsLimitError,
    "OUTCOME_UNKNOWN": OutcomeUnknownError,
    "ENTITY_NOT_FOUND": EntityNotFoundError,
    "ENTITY_EXISTS": EntityExistsError,
    "PARENT_NOT_FOUND": ParentNotFoundError,
    "HAS_CHILDREN": HasChildrenError,
    "VERSION_MISMATCH": VersionMismatchError,
    "LEASE_NOT_FOUND": LeaseNotFoundError,
    "INVALID_FIELD": InvalidError,
    "OUT_OF_RANGE": InvalidError,
    "BODY_TOO_LARGE": InvalidError,
    "REQUEST_ID_REUSED": RequestIdReusedError,
    "REQUEST_EXPIRED": RequestExpiredError,
    "SUPERSEDED": SupersededError,
    "UNAUTHENTICATED": UnauthenticatedError,
    "PERMISSION_DENIED": PermissionDeniedError,
    "OVERLOADED": OverloadedError,
    "RATE_LIMITED": OverloadedError,
    "QUEUE_FULL": OverloadedError,
    "SITE_UNAVAILABLE": UnavailableError,
    "SITE_DRAINING": UnavailableError,
    "LEASE_MOVED": UnavailableError,
    "NO_QUORUM": UnavailableError,
    "SHUTTING_DOWN": UnavailableError,
    "DEADLINE_EXCEEDED": DeadlineExceededError,
    "CANCELED": CanceledError,
    CLOSED: ClosedError,
}


def error_of(d: Details) -> SamyaError:
    """Makes the error of the class of its reason."""
    return _CLASSES.get(d.reason, SamyaError)(d)


def invalid(field: str, problem: str) -> InvalidError:
    """An error about a single argument, found before anything is sent."""
    return InvalidError(Details("INVALID_FIELD", f"{field}: {problem}", violations=(Violation(field, problem),)))


def error_behind(e: BaseException | None) -> SamyaError | None:
    """The SamyaError behind an exception, such as the cancellation of a task, or None.

    A task that is canceled amid a call raises CancelledError, and `asyncio.timeout` makes a
    TimeoutError of it. The SamyaError behind tells what became of the call.
    """
    seen: set[int] = set()
    while e is not None and not isinstance(e, SamyaError) and id(e) not in seen:
        seen.add(id(e))
        e = e.__cause__ or e.__context__
    return e if isinstance(e, SamyaError) else None
