import assert from "node:assert/strict";
import { test } from "node:test";

import { Lines, longestLine } from "../src/model/lines.js";
import { notOffered, outcomeOpen, problemOf, unanswered } from "../src/model/problem.js";
import { alive, failed, fed, noFeed } from "../src/model/feed.js";

test("lines come out whole, however the stream is cut", () => {
  const text = '{"a":1}\n{}\n\n{"b":"ü\\n"}\n';
  for (let size = 1; size <= text.length; size++) {
    const lines = new Lines();
    const out: string[] = [];
    for (let i = 0; i < text.length; i += size) {
      out.push(...lines.take(text.slice(i, i + size)));
    }
    assert.deepEqual(out, ['{"a":1}', "{}", '{"b":"ü\\n"}'], `pieces of ${size}`);
  }
});

test("a line without an end does not grow without bound", () => {
  const lines = new Lines();
  const piece = "x".repeat(1 << 20);
  assert.throws(() => {
    for (let i = 0; i <= longestLine / piece.length; i++) {
      lines.take(piece);
    }
  }, RangeError);
  assert.deepEqual(lines.take("{}\n"), ["{}"]);
});

test("a problem names fields and bounds", () => {
  const p = problemOf(400, {
    title: "Invalid field", detail: "limit: must be at most 5", reason: "INVALID_FIELD", request_id: "r1",
    errors: [{ field: "limit", problem: "must be at most 5" }],
  });
  assert.deepEqual(p.fields, [{ field: "limit", problem: "must be at most 5" }]);
  assert.equal(p.requestId, "r1");
  assert.equal(outcomeOpen(p), false);
  assert.equal(problemOf(0, { reason: "UNAUTHENTICATED", status: 401 }).status, 401);
});

test("what is no problem document still is a problem", () => {
  for (const body of [null, "text", 7, {}, { errors: 3 }, { errors: [null] }]) {
    const p = problemOf(502, body);
    assert.equal(p.title, "The answer has status 502");
    assert.deepEqual(p.fields, []);
  }
  assert.equal(outcomeOpen(unanswered(new Error("refused"))), true);
  assert.equal(outcomeOpen(problemOf(504, { reason: "OUTCOME_UNKNOWN" })), true);
  assert.equal(notOffered(problemOf(404, { reason: "ROUTE_NOT_FOUND" })), true);
  assert.equal(notOffered(problemOf(404, { reason: "ENTITY_NOT_FOUND" })), false);
});

test("a feed keeps its value, and tells since when it is stale", () => {
  const p = unanswered(null);
  let f = failed(fed(7, 100), p, 200);
  f = failed(f, p, 300);
  assert.equal(f.value, 7);
  assert.equal(f.at, 100);
  assert.equal(f.staleSince, 200);
  assert.equal(alive(f, 400).staleSince, null);
  assert.equal(fed(8, 500).staleSince, null);
  assert.equal(failed(noFeed, problemOf(404, { reason: "ROUTE_NOT_FOUND" }), 1).offered, false);
});
