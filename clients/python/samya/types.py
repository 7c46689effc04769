"""The answers to calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Grant:
    """The answer to an acquire."""

    #: All tokens asked for, or fewer with `min_tokens`.
    tokens: int
    #: The tokens left at the site just after the grant.
    left: int
    site: str
    request_id: str


@dataclass(frozen=True)
class Receipt:
    """The answer to a release."""

    tokens: int
    left: int
    site: str
    request_id: str
    #: The release is durable and not counted yet: another site has to be asked before.
    parked: bool


@dataclass(frozen=True)
class AllGrant:
    """The answer to `acquire_all`, always of all tokens asked for."""

    site: str
    request_id: str


@dataclass(frozen=True)
class Committed:
    """The answer to the commit of a lease."""

    kept: int
    returned: int


@dataclass(frozen=True)
class LeaseFacts:
    """What is known of a lease."""

    name: str
    entity: str
    tokens: int
    holder: str
    #: Until when the lease holds its tokens at least, in seconds since the Unix epoch.
    expires: float
    #: The time to live when the lease was granted or renewed, in seconds.
    ttl: float
    #: When the lease ends, by the clock that never goes back.
    ends: float


@dataclass(frozen=True)
class Entity:
    """An entity, and the sum of the books of the sites about it."""

    name: str
    limit: int
    #: Tells the entity apart from earlier entities of the same name.
    generation: int
    #: Counts the changes of the limit, from 1.
    version: int
    #: The entity right above; empty for none.
    parent: str
    children: int
    #: The tokens that can be acquired now, and those that are out, over the sites seen.
    available: int
    acquired: int
    #: Tokens on their way between sites; None unless complete.
    in_transit: int | None
    #: By how many tokens the limit may be exceeded at most.
    may_exceed_by: int
    #: Every site has answered.
    complete: bool
    #: Tokens in transit are counted once; only an exact read tells.
    consistent: bool


@dataclass(frozen=True)
class EntityState(Entity):
    """A state of a watched entity."""

    #: The entity was deleted: no state follows.
    deleted: bool
    #: Continues a later watch after this state.
    resume_token: str


@dataclass(frozen=True)
class LimitChange:
    """The outcome of a change of a limit."""

    limit: int
    version: int
    may_exceed_by: int
    #: Sites not known to have applied the change.
    missing_sites: tuple[str, ...]
