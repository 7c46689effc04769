import assert from "node:assert/strict";
import { test } from "node:test";

import * as samya from "../src/index.js";
import { newId } from "../src/ulid.js";
import { client, granted, lost, never, refused, settle, unsent } from "./fakes.js";

test("a lost answer is repeated as a further attempt of the same request", async () => {
  const { c, transport } = client((s) => (s.target === "127.0.0.1:1" ? lost : granted(3)));
  assert.deepEqual(await c.acquire("acme/vm", 3), { tokens: 3, left: 7, site: "us", requestId: "id" });
  const [first, second] = transport.sent;
  assert.equal(transport.sent.length, 2);
  assert.equal(first?.request.path, "/v1/entities/acme/vm:acquire");
  assert.equal(first?.body["attempt"], undefined);
  assert.deepEqual({ ...first?.body, attempt: 2 }, second?.body);
  assert.match(String(first?.body["request_id"]), /^[0-9A-Z]{26}$/);
  // Ten seconds for the call, five for the wait, and a minute to find out.
  assert.equal(first?.body["not_after"], new Date(1_700_000_075_000).toISOString());
});

test("an unsent request is repeated as it was", async () => {
  const { c, transport } = client((s) => (s.target === "127.0.0.1:1" ? unsent : granted(3)));
  await c.release("acme/vm", 3);
  assert.deepEqual(transport.sent[0]?.body, transport.sent[1]?.body);
});

test("a refusal is an error of its class, with all that it tells", async () => {
  const { c } = client(() => refused("OUT_OF_TOKENS", { left: 2, retryAfter: 500, lacking: "acme", site: "us" }));
  await assert.rejects(c.acquire("acme/vm", 3), (e) => {
    assert.ok(e instanceof samya.OutOfTokensError);
    assert.deepEqual([e.left, e.retryAfter, e.lacking, e.site, e.entity, e.requestId.length], [2, 500, "acme", "us", "acme/vm", 26]);
    return true;
  });
});

test("the time of the call bounds the wait at the site", async () => {
  const { c, transport } = client(() => granted(1));
  await c.acquire("acme/vm", 1);
  await c.acquire("acme/vm", 1, { timeout: 1000 });
  await c.acquire("acme/vm", 1, { timeout: 1000, wait: 0 });
  await c.acquire("acme/vm", 1, { wait: 1500 });
  assert.deepEqual(transport.sent.map((s) => s.body["wait"]), [undefined, "900000us", "0us", "1500000us"]);
});

test("a silent target is left for the next after its time, and the request resumed after the deadline", async () => {
  const { c, transport, clock } = client(never);
  const call = c.acquire("acme/vm", 3, { wait: 0, timeout: 5000 });
  const failed = assert.rejects(call, (e) => {
    assert.ok(e instanceof samya.OutcomeUnknownError);
    assert.deepEqual({ ...e.resume, requestId: "" }, { requestId: "", attempt: 3, notAfter: 1_700_000_065_000, tried: [] });
    return true;
  });
  await clock.advance(1999);
  assert.equal(transport.sent.length, 1);
  await clock.advance(2);
  assert.deepEqual(transport.sent.map((s) => s.target), ["127.0.0.1:1", "127.0.0.1:2"]);
  await clock.advance(3000);
  await failed;
  assert.equal(clock.waiting, 0);
  transport.answer = () => granted(3);
  const error = (await call.catch((e: unknown) => e)) as samya.SamyaError;
  await c.acquire("acme/vm", 3, { resume: error });
  const last = transport.sent.at(-1)?.body;
  assert.deepEqual([last?.["attempt"], last?.["request_id"], last?.["not_after"]], [3, error.requestId, "2023-11-14T22:14:25.000Z"]);
});

test("a kept resume point goes on in another process", async () => {
  const { c, transport } = client(() => granted(3));
  const kept = JSON.parse(JSON.stringify({ requestId: "id-1", attempt: 2, notAfter: 1_700_000_060_000, tried: ["us"] })) as samya.ResumePoint;
  await c.release("acme/vm", 3, { resume: kept });
  assert.deepEqual(transport.sent[0]?.body, { tokens: 3, request_id: "id-1", not_after: "2023-11-14T22:14:20.000Z", attempt: 2, tried: ["us"] });
  await assert.rejects(c.release("acme/vm", 3, { resume: new samya.UnavailableError({ reason: "SITE_UNAVAILABLE" }) }), samya.InvalidError);
});

test("an aborted call ends at once", async () => {
  const { c, transport, clock } = client(never);
  const enough = new AbortController();
  const call = assert.rejects(c.acquire("acme/vm", 3, { signal: enough.signal }), (e) => {
    assert.ok(e instanceof samya.OutcomeUnknownError);
    assert.equal(e.resume?.attempt, 2);
    assert.equal(e.cause, enough.signal.reason);
    return true;
  });
  await settle();
  enough.abort();
  await call;
  await assert.rejects(c.acquire("acme/vm", 3, { signal: enough.signal }), samya.CanceledError);
  assert.equal(transport.sent.length, 1);
  assert.equal(clock.waiting, 0);
});

test("many calls under way with the same signal are no leak", async () => {
  const warnings: Error[] = [];
  const heard = (w: Error): number => warnings.push(w);
  process.on("warning", heard);
  const { c, clock } = client(never);
  const enough = new AbortController();
  const calls = Array.from({ length: 40 }, () => assert.rejects(c.entity("acme/vm", { signal: enough.signal }), samya.CanceledError));
  await settle();
  enough.abort();
  await Promise.all(calls);
  await settle();
  process.off("warning", heard);
  assert.deepEqual(warnings, []);
  assert.equal(clock.waiting, 0);
});

test("a closed client ends its calls", async () => {
  const { c, transport, clock } = client(() => refused("SITE_UNAVAILABLE", { retryAfter: 1000 }));
  const call = assert.rejects(c.acquire("acme/vm", 3), samya.ClosedError);
  await clock.advance(10);
  c.close();
  await call;
  await assert.rejects(c.release("acme/vm", 3), samya.ClosedError);
  assert.equal(transport.closed, true);
  assert.equal(clock.waiting, 0);
});

test("several entities are a single request", async () => {
  const { c, transport } = client((s) => (s.target === "127.0.0.1:1" ? lost : { kind: "done", body: { results: [], request_id: "id", site: "us" } }));
  assert.deepEqual(await c.acquireAll([{ entity: "a", tokens: 1 }, { entity: "b", tokens: 2 }], { wait: 0 }), { site: "us", requestId: "id" });
  assert.equal(transport.sent[1]?.request.path, "/v1/batch");
  assert.equal(transport.sent[1]?.body["attempt"], 2);
  assert.deepEqual(transport.sent[1]?.body["operations"], [{ acquire: { entity: "a", tokens: 1 } }, { acquire: { entity: "b", tokens: 2 } }]);
});

test("reads and changes", async () => {
  const { c, transport } = client((s) => ({ kind: "done", body: s.request.method === "DELETE" ? {} : { name: "a/b", limit: 5, version: 2, in_transit: null, missing_sites: ["eu"] } }));
  assert.equal((await c.entity("a/b", { consistency: "bounded", maxAge: 5000 })).inTransit, undefined);
  assert.deepEqual(await c.setLimit("a/b", 5, { requestId: "id-1" }), { limit: 5, version: 2, mayExceedBy: 0, missingSites: ["eu"] });
  await c.createEntity("a/b", 5, { parent: "a", requestId: "id-2" });
  await c.moveEntity("a/b", "", { requestId: "id-3" });
  await c.deleteEntity("a/b", { subtree: true, requestId: "id-4" });
  assert.deepEqual(transport.sent.map((s) => [s.request.method, s.request.path, s.body]), [
    ["GET", "/v1/entities/a/b?consistency=bounded&max_age=5000000us", {}],
    ["PATCH", "/v1/entities/a/b", { limit: 5, request_id: "id-1" }],
    ["POST", "/v1/entities", { name: "a/b", limit: 5, parent: "a", request_id: "id-2" }],
    ["POST", "/v1/entities/a/b:move", { parent: "", request_id: "id-3" }],
    ["DELETE", "/v1/entities/a/b?subtree=true&request_id=id-4", {}],
  ]);
});

test("a token is shown, and a request without its token is not sent", async () => {
  let token: string | Error = "secret";
  const { c, transport } = client(() => granted(1), {
    token: () => (typeof token === "string" ? token : Promise.reject(token)),
  });
  await c.acquire("acme/vm", 1);
  assert.equal(transport.sent[0]?.request.headers["authorization"], "Bearer secret");
  token = new Error("no such file");
  await assert.rejects(c.acquire("acme/vm", 1, { timeout: 10 }), samya.UnavailableError);
  assert.equal(transport.sent.length, 1);
});

test("a token that does not come ends with the time of the call", async () => {
  const { c, transport, clock } = client(() => granted(1), { token: () => new Promise(() => undefined) });
  const call = assert.rejects(c.acquire("acme/vm", 1, { timeout: 5000 }), samya.UnavailableError);
  await clock.advance(10_000);
  await call;
  assert.equal(transport.sent.length, 0);
  assert.equal(clock.waiting, 0);
});

test("arguments that cannot be sent are refused with their field", async () => {
  const { c, transport } = client(() => granted(1));
  const field = (name: string) => (e: unknown) => e instanceof samya.InvalidError && e.violations[0]?.field === name;
  await assert.rejects(c.acquire("acme/vm", 1.5), field("tokens"));
  await assert.rejects(c.acquire("acme/vm", 2 ** 53), field("tokens"));
  await assert.rejects(c.acquire("acme/vm", 1, { wait: NaN }), field("wait"));
  await assert.rejects(c.acquire("acme/vm", 1, { wait: Infinity }), field("wait"));
  for (const timeout of [0, -1, NaN, Infinity]) {
    await assert.rejects(c.entity("acme/vm", { timeout }), field("timeout"));
  }
  for (const name of ["a/../b", ".", "a:release", "a:watch"]) {
    await assert.rejects(c.acquire(name, 1), field("name"));
  }
  assert.equal(transport.sent.length, 0);
  await c.acquire("a b?/%#", 1);
  assert.equal(transport.sent[0]?.request.path, "/v1/entities/a%20b%3F/%25%23:acquire");
});

test("options are checked, each with its bound", () => {
  const bad = (o: Partial<samya.ClientOptions>, text: RegExp): void =>
    assert.throws(() => new samya.Client({ targets: ["http://127.0.0.1:1"], ...o }), (e) => e instanceof TypeError && text.test(e.message));
  bad({ targets: [] }, /at least 1 and at most 128/);
  bad({ targets: Array.from({ length: 129 }, (_, i) => `http://h${i}`) }, /129/);
  bad({ targets: ["127.0.0.1:1"] }, /want http:/);
  bad({ targets: ["http://h/path"] }, /want http:/);
  bad({ targets: ["http://h", "http://h:80"] }, /given twice/);
  bad({ targets: ["http://h"], token: "t" }, /in clear/);
  bad({ tls: {} }, /want https/);
  bad({ timeout: 0 }, /timeout: 0/);
  bad({ tryTime: NaN }, /tryTime/);
});

test("ids are ULIDs, in the order of their times", () => {
  const ids = [newId(1), newId(2), newId(1_700_000_000_000)];
  assert.deepEqual(ids, [...ids].sort());
  assert.match(ids[2] ?? "", /^01HF7YAT00[0-9A-HJKMNP-TV-Z]{16}$/);
});
