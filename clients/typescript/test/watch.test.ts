import assert from "node:assert/strict";
import { test } from "node:test";

import * as samya from "../src/index.js";
import { client, refused, settle, stream } from "./fakes.js";

const state = (limit: number, token: string, deleted = false): object => ({ name: "acme/vm", limit, version: 1, deleted, resume_token: token });

test("a broken watch goes on after its last state, at the next target", async () => {
  const streams = [stream([state(1, "t1"), state(2, "t2")], new Error("broken")), stream([state(3, "t3"), state(0, "t4", true)])];
  const { c, transport, clock } = client(() => streams[transport.sent.length - 1] ?? refused("INTERNAL"));
  const limits: number[] = [];
  const watching = (async () => {
    for await (const s of c.watch("acme/vm")) {
      limits.push(s.limit);
    }
  })();
  await clock.advance(49);
  assert.equal(transport.sent.length, 1);
  await clock.advance(2);
  await watching;
  assert.deepEqual(limits, [1, 2, 3, 0]);
  assert.deepEqual(transport.sent.map((s) => [s.target, s.request.path]), [
    ["127.0.0.1:1", "/v1/entities/acme/vm:watch"],
    ["127.0.0.1:2", "/v1/entities/acme/vm:watch?resume_token=t2"],
  ]);
  assert.ok(streams.every((s) => s.closed));
});

test("a watch begins after the token of an earlier watch", async () => {
  const { c, transport } = client(() => stream([state(0, "t9", true)]));
  for await (const s of c.watch("acme/vm", { resumeToken: "t8" })) {
    assert.equal(s.deleted, true);
  }
  assert.equal(transport.sent[0]?.request.path, "/v1/entities/acme/vm:watch?resume_token=t8");
});

test("a problem that no repeat heals ends the watch", async () => {
  const { c } = client(() => stream([state(1, "t1"), { problem: { reason: "UNAUTHENTICATED", detail: "the token was removed" } }]));
  const watching = c.watch("acme/vm");
  assert.equal((await watching.next()).value?.limit, 1);
  await assert.rejects(watching.next(), samya.UnauthenticatedError);
  const none = client(() => refused("ENTITY_NOT_FOUND")).c.watch("acme/none");
  await assert.rejects(none.next(), samya.EntityNotFoundError);
});

test("an app manager that stops is left for another", async () => {
  const { c, transport, clock } = client((s) => (s.target === "127.0.0.1:1"
    ? stream([state(1, "t1"), { problem: { reason: "SHUTTING_DOWN" } }]) : stream([state(2, "t2", true)])));
  const seen = (async () => {
    const limits: number[] = [];
    for await (const s of c.watch("acme/vm")) {
      limits.push(s.limit);
    }
    return limits;
  })();
  await clock.advance(51);
  assert.deepEqual(await seen, [1, 2]);
  assert.equal(transport.sent.length, 2);
});

test("streams that tell nothing are not opened without rest", async () => {
  const { c, transport, clock } = client(() => stream([]));
  const end = new AbortController();
  const watching = assert.rejects(c.watch("acme/vm", { signal: end.signal }).next(), samya.CanceledError);
  await clock.advance(10_000);
  assert.ok(transport.sent.length > 5 && transport.sent.length < 15, `${transport.sent.length} streams in ten seconds`);
  end.abort();
  await watching;
  assert.equal(clock.waiting, 0);
});

test("an aborted watch and a left loop close their streams", async () => {
  const open = [stream([state(1, "t1")]), stream([state(1, "t1")])];
  const { c, transport } = client(() => open[transport.sent.length - 1] ?? refused("INTERNAL"));
  const end = new AbortController();
  const watching = c.watch("acme/vm", { signal: end.signal });
  await watching.next();
  const next = assert.rejects(watching.next(), samya.CanceledError);
  await settle();
  end.abort();
  await next;
  for await (const _ of c.watch("acme/vm")) {
    break;
  }
  assert.ok(open.every((s) => s.closed));
});
