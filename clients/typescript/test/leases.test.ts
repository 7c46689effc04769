import assert from "node:assert/strict";
import { test } from "node:test";

import * as samya from "../src/index.js";
import { client, granted, lost, refused, settle } from "./fakes.js";

const lease = { name: "us/id", entity: "acme/vm", tokens: 3, remaining_ms: 3000, holder: "" };
const renewed: ReturnType<typeof granted> = { kind: "done", body: lease };

async function kept(answer: Parameters<typeof client>[0]): Promise<{ k: samya.KeptLease } & ReturnType<typeof client>> {
  const made = client((s, signal) => (s.request.path.endsWith(":acquire") ? granted(3, { lease }) : answer(s, signal)));
  const l = await made.c.acquireLease("acme/vm", 3, 3000, { holder: "job" });
  return { ...made, k: l.keep() };
}

test("a kept lease is renewed thrice in its time", async () => {
  const { k, transport, clock } = await kept(() => renewed);
  assert.deepEqual(transport.sent[0]?.body["lease"], { ttl: "3000000us", holder: "job" });
  await clock.advance(999);
  assert.equal(transport.sent.length, 1);
  await clock.advance(2);
  assert.deepEqual(transport.sent[1]?.body, { lease: "us/id", ttl: "3000000us" });
  await clock.advance(9000);
  assert.equal(transport.sent.length, 11);
  assert.equal(k.signal.aborted, false);
  assert.equal(k.current.expires, clock.now().wall - clock.now().mono + 10_000 + 3000);
  await k.stop();
  assert.equal(k.signal.aborted, true);
  assert.equal(clock.waiting, 0);
});

test("a lease that has ended is told at once", async () => {
  const { k, clock } = await kept(() => refused("LEASE_NOT_FOUND"));
  await clock.advance(1001);
  assert.ok(k.signal.reason instanceof samya.LeaseNotFoundError);
});

test("a lease that cannot be renewed is lost when its time is over", async () => {
  const { k, transport, clock } = await kept(() => lost);
  await clock.advance(2980);
  assert.equal(k.signal.aborted, false);
  assert.ok(transport.sent.length > 4, "a failed renewal is tried again");
  await clock.advance(100);
  assert.ok(k.signal.reason instanceof samya.LeaseNotFoundError);
  assert.equal(clock.waiting, 0);
});

test("a closed client keeps no lease", async () => {
  const { k, c } = await kept(() => renewed);
  c.close();
  await settle();
  assert.ok(k.signal.reason instanceof samya.ClosedError);
});

test("commits and releases of a lease", async () => {
  const { c, transport } = client((s) => (s.request.path === "/v1/leases:commit"
    ? { kind: "done", body: { lease: "us/id", tokens: 2, returned: 1 } } : granted(1)));
  const l = c.leaseNamed("us/id", "acme/vm");
  assert.deepEqual(await l.commit(2), { kept: 2, returned: 1 });
  assert.equal((await l.release()).tokens, 1);
  assert.equal(transport.sent[0]?.body["tokens"], 2);
  assert.equal(transport.sent[1]?.body["lease"], "us/id");
  assert.equal(transport.sent[1]?.body["tokens"], undefined);
});
