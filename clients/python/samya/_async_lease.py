"""Leases of the client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import _requests
from ._keeper import Keeper
from ._requests import Resume
from .errors import CLOSED, ClosedError, Details, LeaseNotFoundError, SamyaError, error_of
from .types import Committed, LeaseFacts, Receipt

if TYPE_CHECKING:
    from ._async import AsyncClient


class AsyncLease:
    """Tokens held for a time, which go back by themselves unless the lease is renewed or committed.

    The methods leave the Lease itself unchanged.
    """

    def __init__(self, client: AsyncClient, facts: LeaseFacts) -> None:
        self._client = client
        self.facts = facts
        self.name = facts.name
        self.entity = facts.entity
        self.tokens = facts.tokens
        self.expires = facts.expires
        self.ttl = facts.ttl

    async def renew(self, ttl: float | None = None, *, timeout: float | None = None) -> AsyncLease:
        """Gives the lease a time to live from now on, in seconds; None: as long as before."""
        return AsyncLease(self._client, await self._client._run(_requests.renew(self.facts, ttl), timeout))

    async def commit(self, tokens: int | None = None, *, timeout: float | None = None) -> Committed:
        """Keeps tokens for good, None for all, gives the rest back, and ends the lease."""
        return await self._client._run(_requests.commit(self._client._now(), self.facts, tokens), timeout)

    async def release(
        self,
        tokens: int | None = None,
        *,
        request_id: str | None = None,
        resume: Resume = None,
        timeout: float | None = None,
    ) -> Receipt:
        """Gives tokens of the lease back, None for all."""
        ask = _requests.release(
            self._client._now(), self.entity, tokens, lease=self.name, request_id=request_id, resume=resume
        )
        return await self._client._run(ask, timeout)

    def keep(self, on_lost: Callable[[SamyaError], None] | None = None) -> AsyncKeptLease:
        """Renews the lease in a task until it is told to stop, as an asynchronous context manager.

        on_lost is called, in that task, once the lease is lost.
        """
        return AsyncKeptLease(self._client, self, on_lost)


class AsyncKeptLease:
    """A lease that is renewed in the background."""

    def __init__(
        self, client: AsyncClient, lease: AsyncLease, on_lost: Callable[[SamyaError], None] | None
    ) -> None:
        self._client = client
        self._on_lost = on_lost
        #: The lease as it was last renewed.
        self.current = lease
        #: Why the lease is not held any more; None while it is.
        self.lost: SamyaError | None = None
        self._task = asyncio.ensure_future(self._renewals())

    async def __aenter__(self) -> AsyncKeptLease:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def check(self) -> None:
        """Raises the reason if the lease is lost. Call it before each step of work."""
        if self.lost is not None:
            raise self.lost

    async def stop(self) -> None:
        """Stops renewing. The lease then lasts as long as its last renewal says."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _renewals(self) -> None:
        self.lost = await self._renew_on()
        if self._on_lost is not None:
            self._on_lost(self.lost)

    async def _renew_on(self) -> SamyaError:
        """Renews until the lease is lost, and returns why."""
        keeper = Keeper(self.current.facts.ends)
        last: SamyaError | None = None
        while True:
            await self._client._sleep(keeper.pause(self._client._now().mono))
            if self._client._closed:
                return error_of(Details(CLOSED, "the client is closed", entity=self.current.entity))
            timeout = keeper.left(self._client._now().mono)
            if timeout == 0:
                message = f"lease {self.current.name} could not be renewed in time"
                return error_of(Details("LEASE_NOT_FOUND", message, entity=self.current.entity, cause=last))
            try:
                self.current = await self.current.renew(self.current.ttl, timeout=timeout)
                keeper.renewed(self.current.facts.ends)
            except (LeaseNotFoundError, ClosedError) as e:
                return e
            except SamyaError as e:
                last = e
