import assert from "node:assert/strict";
import { test } from "node:test";

import { count, counted, fineClock, latency, percent, rate, short, span, unknown } from "../src/model/format.js";
import { nothingPressed, press, sequenceTime } from "../src/model/keys.js";
import { entityPath, href, parse } from "../src/model/routes.js";

test("numbers have separators and units", () => {
  assert.equal(count(1234567), "1,234,567");
  assert.equal(count(null), unknown);
  assert.equal(counted(1, "token"), "1 token");
  assert.equal(counted(0, "entity", "entities"), "0 entities");
  assert.equal(percent(1, 8), "12.5 %");
  assert.equal(percent(1, 0), unknown);
  assert.equal(rate(0.25), "0.3/s");
  assert.equal(rate(1234.6), "1,235/s");
});

test("short numbers fit into tight places", () => {
  for (const [n, text] of [[0, "0"], [950, "950"], [999.5, "999.5"], [1200, "1.2 k"], [12_345, "12 k"], [-4200, "-4.2 k"], [3e9, "3 G"], [2 ** 53 - 1, "9,007 T"]] as const) {
    assert.equal(short(n), text);
  }
});

test("times have the two largest units", () => {
  for (const [ms, text] of [[-5, "0 s"], [59_999, "59 s"], [60_000, "1 min"], [200_000, "3 min 20 s"], [7_500_000, "2 h 5 min"], [270_000_000, "3 d 3 h"]] as const) {
    assert.equal(span(ms), text);
  }
  assert.equal(latency(0.04), "< 0.1 ms");
  assert.equal(latency(2.62), "2.6 ms");
  assert.equal(latency(134.4), "134 ms");
  assert.equal(latency(null), unknown);
  assert.match(fineClock(1_790_000_000_512), /^\d\d:\d\d:20\.5$/);
});

test("an address leads to its page and back", () => {
  for (const r of [
    { page: "cluster" }, { page: "incidents" }, { page: "search", query: "a b&c=d" }, { page: "entity", name: "acme/vm.js" },
    { page: "admin", action: "drain", name: "eu" }, { page: "admin", action: "limit", name: "" },
  ] as const) {
    const [path = "", search = ""] = href(r).split("?");
    assert.deepEqual(parse(path, search), r);
  }
  assert.deepEqual(parse("/console/nonsense", ""), { page: "cluster" });
  assert.deepEqual(parse("/console/admin", "action=explode"), { page: "admin", action: "limit", name: "" });
});

test("the slashes of a name stay in a path, all else is escaped", () => {
  assert.equal(entityPath("acme/vm", "watch"), "/v1/entities/acme/vm:watch");
  assert.equal(entityPath("a b/c?d"), "/v1/entities/a%20b/c%3Fd");
});

test("sequences of keys count for a while", () => {
  const g = press(nothingPressed, "g", 1000);
  assert.equal(g.command, null);
  assert.equal(press(g.pressed, "i", 1500).command, "incidents");
  assert.equal(press(g.pressed, "i", 1001 + sequenceTime).command, null);
  assert.equal(press(g.pressed, "/", 1500).command, "focus-search");
  assert.equal(press(nothingPressed, "i", 1).command, null);
  assert.equal(press(press(g.pressed, "g", 1200).pressed, "c", 1300).command, "cluster");
});
