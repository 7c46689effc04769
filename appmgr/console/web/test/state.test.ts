import assert from "node:assert/strict";
import { test } from "node:test";

import { addActivity, flows, noRecent, outlook, totals } from "../src/model/activity.js";
import { announcements } from "../src/model/announce.js";
import { type EntityStatus, type Finding, type Member, type Members, type Move, type Point, type Survey } from "../src/model/api.js";
import { draftOf, fingerprint, mayApply, reduceDraft, requestOf } from "../src/model/draft.js";
import { grouped } from "../src/model/findings.js";
import { unanswered } from "../src/model/problem.js";
import { type Event, type State, initial, reduce } from "../src/model/state.js";

const from = (...events: Event[]): State => events.reduce(reduce, initial(0, { page: "entity", name: "acme/vm" }, "auto"));

const status = (left: number, limit = 100): EntityStatus => ({
  name: "acme/vm", limit, generation: 1, version: 1, available: left, acquired: limit - left, in_transit: 0, complete: true, consistent: true, debt: 0,
  may_exceed_by: 0, surplus: 0, written_off: 0,
  shares: [{ site: "us", left, offered: 0, net: 0, waiting: 0, redistributions: 0, transfers: 0, age_ms: 0, known: true }],
});

const watchedAt = (at: number, left: number, limit = 100): Event => ({ type: "entity/status", name: "acme/vm", status: status(left, limit), deleted: false, watched: true, at });

test("watched states become rows, half a second apart; a quiet time stays level", () => {
  const s = from(watchedAt(1000, 50), watchedAt(1200, 40), watchedAt(1600, 30), watchedAt(9000, 10));
  assert.deepEqual(s.entity?.shares, { at: [1000, 1500, 8500, 9000], columns: { us: [40, 30, 30, 10] } });
});

test("what comes for another entity is left out", () => {
  const s = from({ type: "entity/status", name: "acme/other", status: status(1), deleted: false, watched: true, at: 5 });
  assert.equal(s.entity?.status.value, null);
});

test("another entity begins anew, the same one stays", () => {
  const s = from(watchedAt(1000, 50));
  assert.equal(reduce(s, { type: "route", route: { page: "entity", name: "acme/vm" } }).entity, s.entity);
  assert.equal(reduce(s, { type: "route", route: { page: "entity", name: "b" } }).entity?.status.value, null);
  assert.equal(reduce(s, { type: "route", route: { page: "cluster" } }).entity, null);
});

test("a lost watch keeps the figures and tells since when they are old", () => {
  const lost: Event = { type: "entity/failed", name: "acme/vm", what: "status", problem: unanswered(null), at: 7000 };
  const s = from(watchedAt(1000, 50), lost, { ...lost, at: 8000 });
  assert.equal(s.entity?.status.value?.available, 50);
  assert.equal(s.entity?.status.staleSince, 7000);
  assert.equal(reduce(s, watchedAt(9000, 49)).entity?.status.staleSince, null);
});

const survey = (granted: number, up: number): Survey => ({
  complete: true,
  sites: [{ site: "us", known: true, up_ms: up, entities: 1, tokens_left: 1, tokens_out: 1, tokens_offered: 0, leases: 0, waiting: 0,
    acquires_granted: granted, acquires_refused: 0, releases: 0, peers: [] }],
});

test("rates are differences over time; a restart gives none", () => {
  const fed = (value: Survey, at: number): Event => ({ type: "fed", feed: "survey", value, at });
  const s = from(fed(survey(100, 1000), 1000), fed(survey(300, 3000), 3000));
  assert.equal(s.rates["us"]?.granted, 100);
  assert.equal(reduce(s, fed(survey(5, 200), 5000)).rates["us"]?.granted, null);
  assert.deepEqual(s.rateSeries.columns["us"], [100]);
});

test("an answer to an earlier search is left out", () => {
  const found: Event = { type: "search/found", query: "v", page: { entities: [status(1)], next_page_token: "" }, further: false, took: 5 };
  const s = from({ type: "search/ask", query: "v" }, { type: "search/ask", query: "vm" }, found);
  assert.equal(s.search.busy, true);
  assert.deepEqual(s.search.results, []);
  const t = reduce(s, { ...found, query: "vm" });
  assert.equal(t.search.results.length, 1);
  assert.equal(reduce(t, { ...found, query: "vm", further: true }).search.results.length, 2);
  assert.deepEqual(reduce(t, { type: "search/ask", query: "" }).search.results, []);
});

const point = (at: number, net: number, more: Partial<Point> = {}): Point => ({ at_ms: at, took_ms: 1000, granted: 4, refused: 1, released: 0, waiting: 2, left: 9, net, forecast: null, ...more });

test("activity is merged once; of a transfer the receiver's word counts", () => {
  const move = { at_ms: 1000, from: "eu", to: "us", tokens: 40, by: "transfer" };
  const given = { at_ms: 1100, from: "eu", to: "", tokens: 5, by: "instance" };
  const sites = [
    { site: "us", known: true, points: [point(1000, 5)], moves: [move] },
    { site: "eu", known: true, points: [point(990, 5, { granted: 3, took_ms: 500 })], moves: [{ ...move, at_ms: 900 }, given] },
  ];
  const a = { complete: true, now_ms: 2000, sites };
  const r = addActivity(addActivity(noRecent, a, 2000), a, 3000);
  assert.equal(r.points["us"]?.length, 1);
  assert.deepEqual(r.moves, [given, move]);
  assert.deepEqual(totals(r), { at: [1000], granted: [10], refused: [3], waiting: [4] });
  assert.equal(addActivity(noRecent, a, 100_000).skew, 98_000);
  const lost = addActivity(r, { ...a, sites: [{ site: "us", known: false }] }, 6000);
  assert.deepEqual([lost.points["us"]?.length, lost.missing], [1, ["us"]]);
});

test("a forecast stands at the time that it is about", () => {
  const forecast = { expected: 2, median: 3, high: 9, horizon_ms: 3000 };
  const sites = [{ site: "us", known: true, points: [point(1010, 10, { forecast }), point(1990, 11, { forecast: { ...forecast, expected: 4 } }), point(3000, 12)] }];
  const o = outlook(addActivity(noRecent, { complete: true, now_ms: 3000, sites }, 3000), "us");
  assert.deepEqual(o.at, [1000, 2000, 3000, 4000, 5000, 6000]);
  assert.deepEqual(o.net, [10, 11, 12, null, null, null]);
  assert.deepEqual(o.expected, [null, null, null, 12, 15, 15]);
  assert.deepEqual([o.low[3], o.high[3], o.horizon], [13, 19, 3000]);
  assert.deepEqual(outlook(noRecent, "us").at, []);
});

test("flows add up the moves of a time", () => {
  const m = (at: number, f: string, t: string, tokens: number): Move => ({ at_ms: at, from: f, to: t, tokens, by: "transfer" });
  const all = [m(1, "a", "b", 5), m(2, "a", "b", 6), m(3, "b", "a", 20), m(0, "a", "b", 100)];
  assert.deepEqual(flows(all, 1), [{ from: "b", to: "a", tokens: 20, last: 3 }, { from: "a", to: "b", tokens: 11, last: 2 }]);
});

test("a change may be made only after a dry run of the same request", () => {
  const subject = status(50);
  let d = draftOf("limit", "r1");
  const field = (value: string, requestId: string): void => {
    d = reduceDraft(d, { type: "draft/field", field: "limit", value, requestId })!;
  };
  field("x", "r2");
  assert.ok(Array.isArray(requestOf(d, subject)));
  field("6,000", "r3");
  const r = requestOf(d, subject);
  assert.ok(!Array.isArray(r));
  assert.deepEqual(r.body, { limit: 6000, expected_version: 1, request_id: "r3", wait_applied: true });
  assert.equal(mayApply(d, r), false);
  d = reduceDraft(d, { type: "draft/tried", of: fingerprint(r), answer: {} })!;
  assert.equal(mayApply(d, r), true);
  assert.equal(mayApply(reduceDraft(d, { type: "draft/busy", what: "change" })!, r), false);
  // A change of unknown outcome is repeated under its id.
  d = reduceDraft(d, { type: "draft/failed", problem: unanswered(null) })!;
  assert.equal(mayApply(d, requestOf(d, subject)), true);
  assert.equal(mayApply(d, requestOf(d, { ...subject, version: 2 })), false, "another version needs another dry run");
  field("7000", "r4");
  assert.equal(mayApply(d, requestOf(d, subject)), false);
});

test("limits beyond whole numbers are refused before they are sent", () => {
  for (const limit of ["", "-1", "1.5", "9007199254740992", "1e3"]) {
    const d = draftOf("create", "r", { name: "a", limit });
    assert.ok(Array.isArray(requestOf(d, null)), limit);
  }
  const d = draftOf("create", "r", { name: "a", limit: "9007199254740991", parent: "" });
  assert.deepEqual(requestOf(d, null), { method: "POST", path: "/v1/entities", body: { name: "a", limit: 2 ** 53 - 1, request_id: "r" } });
});

test("changes of sites and limits are said, and only changes", () => {
  const member = (health: string, state = "member"): Member => ({ name: "eu", state, knows: true, region: "eu", address: "", health, waits_for: "" });
  const fed = (...members: Member[]): Event => ({ type: "fed", feed: "members", value: { version: 1, behind: 0, waits_for: "", answered_by: "us", members } satisfies Members, at: 1 });
  const a = from(fed(member("serving")), watchedAt(1, 5));
  assert.deepEqual(announcements(initial(0, { page: "cluster" }, "auto"), a), []);
  assert.deepEqual(announcements(a, a), []);
  assert.deepEqual(announcements(a, reduce(a, fed(member("unreachable")))), ["Site eu is unreachable."]);
  assert.deepEqual(announcements(a, reduce(a, fed(member("serving", "draining")))), ["Site eu is now draining."]);
  assert.deepEqual(announcements(a, reduce(a, watchedAt(2, 5, 6000))), ["The limit of acme/vm is now 6,000 tokens."]);
  assert.deepEqual(announcements(a, reduce(a, { type: "failed", feed: "members", problem: unanswered(null), at: 9 })), ["Live updates are lost."]);
});

test("findings of a kind stand together, in the order of the first", () => {
  const f = (id: string, name: string): Finding => ({ id, severity: "warning", labels: { name }, summary: "", means: "", do: "", runbook: "" });
  assert.deepEqual(grouped([f("B", "1"), f("A", "1"), f("B", "2")]).map((g) => g.map((x) => x.id + x.labels["name"])), [["B1", "B2"], ["A1"]]);
  assert.deepEqual(grouped([]), []);
});
