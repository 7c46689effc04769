"""Leases of the blocking client."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import _requests
from ._keeper import Keeper
from ._requests import Resume
from ._sync_http import Cancel
from .errors import CLOSED, ClosedError, Details, LeaseNotFoundError, SamyaError, error_of
from .types import Committed, LeaseFacts, Receipt

if TYPE_CHECKING:
    from ._sync import Client


class Lease:
    """Tokens held for a time, which go back by themselves unless the lease is renewed or committed.

    The methods leave the Lease itself unchanged.
    """

    def __init__(self, client: Client, facts: LeaseFacts) -> None:
        self._client = client
        self.facts = facts
        self.name = facts.name
        self.entity = facts.entity
        self.tokens = facts.tokens
        self.expires = facts.expires
        self.ttl = facts.ttl

    def renew(self, ttl: float | None = None, *, timeout: float | None = None, cancel: Cancel | None = None) -> Lease:
        """Gives the lease a time to live from now on, in seconds; None: as long as before."""
        return Lease(self._client, self._client._run(_requests.renew(self.facts, ttl), timeout, cancel))

    def commit(self, tokens: int | None = None, *, timeout: float | None = None) -> Committed:
        """Keeps tokens for good, None for all, gives the rest back, and ends the lease."""
        return self._client._run(_requests.commit(self._client._now(), self.facts, tokens), timeout)

    def release(
        self,
        tokens: int | None = None,
        *,
        request_id: str | None = None,
        resume: Resume = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Receipt:
        """Gives tokens of the lease back, None for all."""
        ask = _requests.release(
            self._client._now(), self.entity, tokens, lease=self.name, request_id=request_id, resume=resume
        )
        return self._client._run(ask, timeout, cancel)

    def keep(self, on_lost: Callable[[SamyaError], None] | None = None) -> KeptLease:
        """Renews the lease in a thread until it is told to stop, as a context manager.

        on_lost is called, in that thread, once the lease is lost.
        """
        return KeptLease(self._client, self, on_lost)


class KeptLease:
    """A lease that is renewed in the background."""

    def __init__(self, client: Client, lease: Lease, on_lost: Callable[[SamyaError], None] | None) -> None:
        self._client = client
        self._on_lost = on_lost
        self._cancel = Cancel()
        self._wake = threading.Event()
        self._forget = [c.hook(self._wake.set) for c in (self._cancel, client._closing)]
        #: The lease as it was last renewed.
        self.current = lease
        #: Why the lease is not held any more; None while it is.
        self.lost: SamyaError | None = None
        self._thread = threading.Thread(target=self._renewals, name=f"lease {lease.name}", daemon=True)
        self._thread.start()

    def __enter__(self) -> KeptLease:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def check(self) -> None:
        """Raises the reason if the lease is lost. Call it before each step of work."""
        if self.lost is not None:
            raise self.lost

    def stop(self) -> None:
        """Stops renewing. The lease then lasts as long as its last renewal says."""
        self._cancel.cancel()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _renewals(self) -> None:
        try:
            lost = self._renew_on()
        finally:
            for f in self._forget:
                f()
        if lost is not None:
            self.lost = lost
            if self._on_lost is not None:
                self._on_lost(lost)

    def _renew_on(self) -> SamyaError | None:
        """Renews until the lease is lost, and returns why; None if told to stop."""
        keeper = Keeper(self.current.facts.ends)
        last: SamyaError | None = None
        while True:
            self._client._wait(self._wake, keeper.pause(self._client._now().mono))
            if self._cancel.canceled:
                return None
            if self._client._closing.canceled:
                return error_of(Details(CLOSED, "the client is closed", entity=self.current.entity))
            timeout = keeper.left(self._client._now().mono)
            if timeout == 0:
                message = f"lease {self.current.name} could not be renewed in time"
                return error_of(Details("LEASE_NOT_FOUND", message, entity=self.current.entity, cause=last))
            try:
                self.current = self.current.renew(self.current.ttl, timeout=timeout, cancel=self._cancel)
                keeper.renewed(self.current.facts.ends)
            except (LeaseNotFoundError, ClosedError) as e:
                return e
            except SamyaError as e:
                last = e
