import assert from "node:assert/strict";
import { test } from "node:test";

import { type ChartModel, drawn, summary, tableRows, until } from "../src/model/chart.js";
import { labels, layout, freeSpot, overlap } from "../src/model/graph.js";
import { addRow, niceEnd, niceRange, noSeries, prepend, stack } from "../src/model/series.js";
import { grow, noTree, rows, step, turn } from "../src/model/tree.js";

const latencies: Record<string, number> = { "as au": 110, "as eu": 180, "as sa": 300, "as us": 150, "au eu": 270, "au sa": 290, "au us": 160, "eu sa": 200, "eu us": 90, "sa us": 130 };
const known = (a: string, b: string): number | undefined => latencies[[a, b].sort().join(" ")];
const five = ["as", "au", "eu", "sa", "us"];

test("near sites stand near each other, and the picture stays the same", () => {
  const places = layout(five, known);
  assert.deepEqual(layout(five, known), places);
  const d = (a: string, b: string): number => {
    const [p, q] = [places.find((x) => x.name === a)!, places.find((x) => x.name === b)!];
    return Math.hypot(p.x - q.x, p.y - q.y);
  };
  assert.ok(d("eu", "us") < d("au", "eu"));
  assert.ok(d("as", "au") < d("as", "sa"));
  for (const p of places) {
    assert.ok(p.x >= 0 && p.x <= 1 && p.y >= 0 && p.y <= 1);
  }
});

test("few sites, and sites without latencies, have places too", () => {
  assert.deepEqual(layout([], known), []);
  assert.deepEqual(layout(["us"], known), [{ name: "us", x: 0.5, y: 0.5 }]);
  for (const n of [2, 3, 9, 40]) {
    const places = layout(Array.from({ length: n }, (_, i) => `s${i}`), () => undefined);
    assert.equal(new Set(places.map((p) => `${p.x.toFixed(3)} ${p.y.toFixed(3)}`)).size, n);
    assert.ok(places.every((p) => Number.isFinite(p.x) && Number.isFinite(p.y)));
  }
});

test("labels stand clear of each other", () => {
  const lines = [
    { from: { x: 0, y: 0 }, to: { x: 200, y: 100 }, wide: 40 },
    { from: { x: 0, y: 100 }, to: { x: 200, y: 0 }, wide: 40 },
  ];
  const [a, b] = labels(lines, 16, [{ x: 100, y: 50, wide: 60, high: 30 }]);
  assert.equal(overlap(a!, b!), 0);
  assert.equal(overlap(a!, { x: 100, y: 50, wide: 60, high: 30 }), 0);
});

test("the pool stands away from all sites", () => {
  const places = layout(five, known);
  const spot = freeSpot(places);
  assert.ok(places.every((p) => Math.hypot(p.x - spot.x, p.y - spot.y) > 0.15));
});

test("rows of figures are bounded, and a row of the same time replaces the last", () => {
  let s = noSeries;
  for (let t = 1; t <= 5; t++) {
    s = addRow(s, t, { us: t, ...(t > 2 ? { eu: 10 * t } : {}) }, 4);
  }
  assert.deepEqual(s, { at: [2, 3, 4, 5], columns: { us: [2, 3, 4, 5], eu: [null, 30, 40, 50] } });
  s = addRow(s, 5, { us: 7 }, 4);
  assert.deepEqual(s.columns, { us: [2, 3, 4, 7], eu: [null, 30, 40, null] });
  assert.equal(addRow(s, 3, { us: 0 }, 4), s, "a row of the past is left out");
});

test("older rows come before, and only older ones", () => {
  const s = addRow(noSeries, 10, { us: 1 }, 9);
  const older = { at: [5, 8, 10, 12], columns: { us: [5, 8, 100, 120], eu: [1, 2, 3, 4] } };
  assert.deepEqual(prepend(s, older, 9), { at: [5, 8, 10], columns: { us: [5, 8, 1], eu: [1, 2, null] } });
  assert.deepEqual(prepend(s, older, 2).at, [8, 10]);
  assert.equal(prepend(s, noSeries, 9), s);
});

test("stacked columns add up", () => {
  assert.deepEqual(stack([[1, 2, null], [10, null, null], [100, 200, 300]]), [[1, 2, null], [11, 2, null], [111, 202, 300]]);
  assert.deepEqual(stack([]), []);
});

test("scales end at round numbers above all values", () => {
  for (const [most, end] of [[0, 1], [-3, 1], [0.7, 0.8], [1, 1.5], [97, 100], [99, 150], [4100, 5000], [1e6, 1.5e6]] as const) {
    assert.equal(niceEnd(most), end);
  }
  assert.deepEqual(niceRange([[1, null, 44], [3]]), [0, 50]);
  assert.deepEqual(niceRange([[-7, 2]]), [-8, 2.5]);
  assert.deepEqual(niceRange([]), [0, 1]);
});

const chart: ChartModel = {
  title: "Tokens", unit: "tokens", at: [0, 100_000, 200_000, 300_000], stacked: true, window: 150_000,
  lines: [
    { label: "us", values: [1, 2, 3, 4], color: 0, look: "area" },
    { label: "limit", values: [9, 9, 9, 9], color: -1, look: "line" },
    { label: "eu", values: [10, 20, 30, 40], color: 1, look: "area" },
  ],
};

test("a chart draws its window, stacks its areas alone, and its table has the numbers themselves", () => {
  const d = drawn(chart);
  assert.deepEqual(d.data, [[100, 200, 300], [2, 3, 4], [9, 9, 9], [22, 33, 44]]);
  assert.deepEqual([d.from, d.to, d.range], [150, 300, [0, 50]]);
  assert.deepEqual(tableRows(chart, 2), [{ at: 300_000, values: [4, 9, 40] }, { at: 200_000, values: [3, 9, 30] }]);
  assert.match(summary(chart, String), /Tokens in tokens\. Latest: us 4, limit 9, eu 40/);
});

test("a quiet line goes on until now", () => {
  const c = until(chart, 310_000);
  assert.deepEqual([c.at.at(-1), c.lines[2]?.values.at(-1)], [310_000, 40]);
  assert.equal(until(chart, 300_100), chart);
  assert.deepEqual(until({ ...chart, at: [] }, 5).at, []);
});

const entity = (name: string, children = 0): { name: string; limit: number; generation: number; version: number; children: number } => ({ name, limit: 1, generation: 1, version: 1, children });

test("a tree shows what is open, and keys walk it", () => {
  let t = grow({ ...noTree, root: entity("a", 3) }, "a", { entities: [entity("a/1", 1), entity("a/2")], next_page_token: "n" }, false);
  assert.deepEqual(rows(t).map((r) => r.entity.name), ["a"]);
  t = turn(t, "a", true);
  assert.deepEqual(rows(t).map((r) => [r.entity.name, r.level, r.position, r.of, r.more]), [
    ["a", 1, 1, 1, undefined], ["a/1", 2, 1, 3, undefined], ["a/2", 2, 2, 3, undefined], ["a", 2, 3, 3, "n"],
  ]);
  t = grow(t, "a", { entities: [entity("a/3")], next_page_token: "" }, true);
  const all = rows(t);
  assert.deepEqual(all.map((r) => r.entity.name), ["a", "a/1", "a/2", "a/3"]);
  assert.deepEqual(step(all, 0, "ArrowRight"), { to: 1 });
  assert.deepEqual(step(all, 1, "ArrowRight"), { open: "a/1" });
  assert.equal(step(all, 2, "ArrowRight"), null);
  assert.deepEqual(step(all, 2, "ArrowLeft"), { to: 0 });
  assert.deepEqual(step(all, 0, "ArrowLeft"), { close: "a" });
  assert.deepEqual(step(all, 3, "ArrowDown"), { to: 3 });
  assert.deepEqual(step(all, 1, "End"), { to: 3 });
  assert.equal(step(all, 0, "x"), null);
});
