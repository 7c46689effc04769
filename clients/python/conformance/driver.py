"""Drives the client by lines of JSON, as the drivers of the other clients do.

It makes the calls that the conformance suite asks for, and judges nothing. With --sync it
drives the blocking client, each call in a thread, else the client for asyncio.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import samya  # noqa: E402

# The time between two acquires of a worker, in seconds: the machine is shared.
BURST_PAUSE = 0.005

Result = dict[str, Any]


def seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000


def given(**arguments: Any) -> dict[str, Any]:
    """The arguments that are not None."""
    return {k: v for k, v in arguments.items() if v is not None}


def failure(e: BaseException) -> Result:
    """Tells an error as all drivers do."""
    known = samya.error_behind(e)
    if known is None:
        return {"kind": "Fault", "message": repr(e)}
    e = known
    return given(
        kind=type(e).__name__.removesuffix("Error"),
        reason=e.reason,
        message=str(e),
        entity=e.entity,
        request_id=e.request_id,
        lacking=e.lacking,
        retry_after_ms=e.retry_after * 1000,
        left=e.left,
        limit=e.limit,
        violations=[{"field": v.field, "problem": v.problem} for v in e.violations],
        resume=e.resume.to_dict() if e.resume is not None else None,
    )


class Driver:
    """The calls under way, and the clients and leases that they use."""

    def __init__(self, blocking: bool) -> None:
        self.blocking = blocking
        self.pool = ThreadPoolExecutor(64)
        self.clients: dict[str, Any] = {}
        self.held: dict[str, Any] = {}
        self.kept: dict[str, Any] = {}
        # How each call under way is canceled.
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.cancels: dict[int, samya.Cancel] = {}
        self.stops: dict[int, asyncio.Event] = {}

    async def make(self, id: int, f: Any, *args: Any, cancelable: bool = True, **kw: Any) -> Any:
        """Makes a call of either client."""
        if not self.blocking:
            return await f(*args, **kw)
        if cancelable:
            kw["cancel"] = self.cancels.setdefault(id, samya.Cancel())
        return await asyncio.get_running_loop().run_in_executor(self.pool, lambda: f(*args, **kw))

    async def answer(self, id: int, op: str, a: dict[str, Any]) -> None:
        try:
            reply = {"id": id, "ok": await self.call(id, op, a)}
        except (Exception, asyncio.CancelledError) as e:
            reply = {"id": id, "error": failure(e)}
        for under_way in (self.tasks, self.cancels, self.stops):
            under_way.pop(id, None)
        print(json.dumps(reply), flush=True)

    async def call(self, id: int, op: str, a: dict[str, Any]) -> Result:
        if op == "open":
            tls = samya.tls_context(ca=a["ca"]) if "ca" in a else None
            kind = samya.Client if self.blocking else samya.AsyncClient
            self.clients[a["client"]] = kind(a["targets"], token=a.get("token"), tls=tls)
            return {}
        if op == "cancel":
            of = a["of"]
            if of in self.stops:
                self.stops[of].set()
            elif of in self.cancels:
                self.cancels[of].cancel()
            elif of in self.tasks:
                self.tasks[of].cancel()
            return {}
        if op == "kept":
            lost = self.kept[a["lease"]].lost
            return {"held": lost is None, "why": "" if lost is None else f"{lost}: {lost.__cause__!r}"}
        if op == "unkeep":
            await self.make(id, self.kept[a["lease"]].stop, cancelable=False)
            return {}
        c = self.clients[a.get("client", "main")]
        entity = a.get("entity", "")
        common = given(timeout=seconds(a.get("timeout_ms")))
        point = a.get("resume")
        if point is not None:
            point = samya.ResumePoint(
                point["request_id"], point["attempt"], point["not_after_ms"], tuple(point["tried"] or ())
            )
        named = given(request_id=a.get("request_id"), **common)
        moving = given(resume=point, **named)
        waiting = given(wait=seconds(a.get("wait_ms")), **moving)
        if op == "acquire":
            more = given(min_tokens=a.get("min_tokens"), dry_run=a.get("dry_run"))
            g = await self.make(id, c.acquire, entity, a["tokens"], **waiting, **more)
            return {"tokens": g.tokens, "left": g.left, "site": g.site, "request_id": g.request_id}
        if op == "release":
            r = await self.make(id, c.release, entity, a["tokens"], **moving)
            return {"tokens": r.tokens, "left": r.left, "site": r.site, "request_id": r.request_id, "parked": r.parked}
        if op == "acquire_all":
            parts = [(p["entity"], p["tokens"]) for p in a["parts"]]
            g = await self.make(id, c.acquire_all, parts, **waiting)
            return {"site": g.site, "request_id": g.request_id}
        if op == "acquire_lease":
            holder = given(holder=a.get("holder"))
            return self.told(await self.make(id, c.acquire_lease, entity, a["tokens"], a["ttl_ms"] / 1000, **waiting, **holder))
        if op in ("renew", "commit", "return_lease", "keep"):
            return await self.lease(id, op, self.held.get(a["lease"]) or c.lease_named(a["lease"], entity), a)
        if op == "watch":
            return await self.watch(id, c, a)
        if op == "burst":
            return await self.burst(id, c, a)
        if op == "entity":
            reading = given(consistency=a.get("consistency"), max_age=seconds(a.get("max_age_ms")))
            e = await self.make(id, c.entity, entity, **reading, **common)
            return {k: getattr(e, k) for k in e.__dataclass_fields__}
        if op == "create":
            await self.make(id, c.create_entity, entity, a["limit"], **given(parent=a.get("parent")), **named)
            return {}
        if op == "set_limit":
            more = given(expected_version=a.get("expected_version"), wait_applied=a.get("wait_applied"))
            change = await self.make(id, c.set_limit, entity, a["limit"], **more, **named)
            return {"limit": change.limit, "version": change.version, "may_exceed_by": change.may_exceed_by}
        if op == "delete":
            subtree = given(subtree=a.get("subtree"))
            await self.make(id, c.delete_entity, entity, cancelable=False, **subtree, **named)
            return {}
        raise ValueError(f'there is no call "{op}"')

    async def lease(self, id: int, op: str, held: Any, a: dict[str, Any]) -> Result:
        if op == "renew":
            return self.told(await self.make(id, held.renew, seconds(a.get("ttl_ms"))))
        if op == "commit":
            done = await self.make(id, held.commit, a.get("tokens"), cancelable=False)
            return {"kept": done.kept, "returned": done.returned}
        if op == "return_lease":
            return {"tokens": (await self.make(id, held.release, a.get("tokens"))).tokens}
        self.kept[a["lease"]] = held.keep()
        return {}

    def told(self, held: Any) -> Result:
        self.held[held.name] = held
        return {"lease": held.name, "tokens": held.tokens, "lasts_ms": (held.expires - time.time()) * 1000}

    async def watch(self, id: int, c: Any, a: dict[str, Any]) -> Result:
        """Tells the states of an entity, until it has a limit or is deleted."""
        states: list[Result] = []
        token = ""

        def more(s: samya.EntityState) -> bool:
            nonlocal token
            token = s.resume_token
            states.append({"limit": s.limit, "version": s.version, "deleted": s.deleted})
            return s.limit != a.get("until_limit")

        options = given(resume_token=a.get("resume_token"))
        if self.blocking:
            cancel = self.cancels.setdefault(id, samya.Cancel())

            def follow() -> None:
                for s in c.watch(a["entity"], cancel=cancel, **options):
                    if not more(s):
                        break

            await asyncio.get_running_loop().run_in_executor(self.pool, follow)
        else:
            async for s in c.watch(a["entity"], **options):
                if not more(s):
                    break
        return {"first": states[0], "last": states[-1], "states": len(states), "resume_token": token}

    async def burst(self, id: int, c: Any, a: dict[str, Any]) -> Result:
        """Acquires single tokens until it is canceled, and finds out each unknown outcome."""
        stop = self.stops[id] = asyncio.Event()
        total = {"granted": 0, "resumed": 0, "unknown": 0, "failed": ""}

        async def worker() -> None:
            while not stop.is_set():
                last: samya.SamyaError | None = None
                for tries in range(9):
                    try:
                        grant = await self.make(id, c.acquire, a["entity"], 1, cancelable=False, resume=last)
                        total["granted"] += grant.tokens
                        break
                    except samya.OutcomeUnknownError as e:
                        last = e
                        total["resumed" if tries < 8 else "unknown"] += 1
                    except samya.SamyaError as e:
                        total["failed"] = f"{e.reason}: {e}"
                        break
                await asyncio.sleep(BURST_PAUSE)

        await asyncio.gather(*(worker() for _ in range(a["workers"])))
        return total


async def main(blocking: bool) -> None:
    driver = Driver(blocking)
    lines = asyncio.StreamReader(limit=8 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        request = json.loads(line)
        task = asyncio.ensure_future(driver.answer(request["id"], request["op"], request["with"] or {}))
        driver.tasks[request["id"]] = task
    under_way = list(driver.tasks.values())
    for task in under_way:
        task.cancel()
    for kept in driver.kept.values():
        await driver.make(0, kept.stop, cancelable=False)
    for c in driver.clients.values():
        await driver.make(0, c.close, cancelable=False)
    await asyncio.gather(*under_way, return_exceptions=True)
    driver.pool.shutdown()


if __name__ == "__main__":
    asyncio.run(main("--sync" in sys.argv[1:]))
