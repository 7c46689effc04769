"""A client of samya, a quota service over several regions.

It acquires and releases tokens at the app managers of a cluster, and never guesses: an
operation that may or may not have been done is repeated in a way that can do it only once.
If even the repeats bring no answer, an OutcomeUnknownError tells how to go on.
"""

from ._async import AsyncClient
from ._async_lease import AsyncKeptLease, AsyncLease
from ._options import tls_context, token_file
from ._sync import Client
from ._sync_http import Cancel
from ._sync_lease import KeptLease, Lease
from .errors import (
    CanceledError,
    ClosedError,
    DeadlineExceededError,
    EntityExistsError,
    EntityNotFoundError,
    ExceedsLimitError,
    HasChildrenError,
    InvalidError,
    LeaseNotFoundError,
    OutcomeUnknownError,
    OutOfTokensError,
    OverloadedError,
    ParentNotFoundError,
    PermissionDeniedError,
    RequestExpiredError,
    RequestIdReusedError,
    ResumePoint,
    SamyaError,
    SupersededError,
    UnauthenticatedError,
    UnavailableError,
    VersionMismatchError,
    Violation,
    error_behind,
)
from .types import AllGrant, Committed, Entity, EntityState, Grant, LimitChange, Receipt

__all__ = [
    "AllGrant",
    "AsyncClient",
    "AsyncKeptLease",
    "AsyncLease",
    "Cancel",
    "CanceledError",
    "Client",
    "ClosedError",
    "Committed",
    "DeadlineExceededError",
    "Entity",
    "EntityExistsError",
    "EntityNotFoundError",
    "EntityState",
    "ExceedsLimitError",
    "Grant",
    "HasChildrenError",
    "InvalidError",
    "KeptLease",
    "Lease",
    "LeaseNotFoundError",
    "LimitChange",
    "OutOfTokensError",
    "OutcomeUnknownError",
    "OverloadedError",
    "ParentNotFoundError",
    "PermissionDeniedError",
    "Receipt",
    "RequestExpiredError",
    "RequestIdReusedError",
    "ResumePoint",
    "SamyaError",
    "SupersededError",
    "UnauthenticatedError",
    "UnavailableError",
    "VersionMismatchError",
    "Violation",
    "error_behind",
    "tls_context",
    "token_file",
]
