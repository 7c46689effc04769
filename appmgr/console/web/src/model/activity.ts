// What the sites tell of an entity's last minutes: demand, forecasts and moves of tokens.

import { type Activity, type Move, type Point } from "./api.js";
import { type Series } from "./series.js";

/** How many steps and moves are kept. */
export const mostPoints = 320;
export const mostMoves = 200;

export interface Recent {
  /** The steps of each site, oldest first. */
  readonly points: Readonly<Record<string, readonly Point[]>>;
  /** The moves of tokens, newest first. */
  readonly moves: readonly Move[];
  readonly models: Readonly<Record<string, string>>;
  readonly missing: readonly string[];
  /** The end of the last answer by the clock of the cluster; 0: none. */
  readonly upTo: number;
  readonly stepMs: number;
  /** What to add to a time of the cluster to get one of the reader. */
  readonly skew: number;
}

export const noRecent: Recent = { points: {}, moves: [], models: {}, missing: [], upTo: 0, stepMs: 1000, skew: 0 };

/** Clocks that differ by less count as equal, in milliseconds. */
const sameClock = 2000;

/** Adds an answer that came at `at` by the reader's clock. */
export function addActivity(r: Recent, a: Activity, at: number): Recent {
  const points: Record<string, readonly Point[]> = { ...r.points };
  const models: Record<string, string> = { ...r.models };
  let moves: readonly Move[] = r.moves;
  for (const s of a.sites) {
    if (s.known) {
      points[s.site] = mergePoints(points[s.site] ?? [], s.points ?? []);
      moves = mergeMoves(moves, s.moves ?? []);
      models[s.site] = s.model ?? "";
    }
  }
  const skew = Math.abs(at - a.now_ms) < sameClock ? 0 : r.skew !== 0 ? r.skew : at - a.now_ms;
  const missing = a.sites.filter((s) => !s.known).map((s) => s.site);
  return { points, moves, models, missing, upTo: a.now_ms, stepMs: a.step_ms, skew };
}

function mergePoints(old: readonly Point[], fresh: readonly Point[]): readonly Point[] {
  const by = new Map(old.map((p) => [p.at_ms, p]));
  for (const p of fresh) {
    by.set(p.at_ms, p);
  }
  return [...by.values()].sort((a, b) => a.at_ms - b.at_ms).slice(-mostPoints);
}

/** Both ends may tell a move; the same pair and number is the same move. */
const keyOf = (m: Move): string => `${m.from}|${m.to}|${m.by}|${m.seq ?? `${m.at_ms}/${m.tokens}`}`;

export function mergeMoves(old: readonly Move[], fresh: readonly Move[]): readonly Move[] {
  const by = new Map([...old].reverse().map((m) => [keyOf(m), m]));
  for (const m of fresh) {
    const known = by.get(keyOf(m));
    if (known === undefined || m.at_ms < known.at_ms) {
      by.set(keyOf(m), m);
    }
  }
  return [...by.values()].sort((a, b) => b.at_ms - a.at_ms).slice(0, mostMoves);
}

/** The tokens left of each site as rows, to fill in the time before the watch. */
export function leftSeries(r: Recent): Series {
  const times = [...new Set(Object.values(r.points).flatMap((p) => p.map((q) => q.at_ms)))].sort((a, b) => a - b);
  const columns: Record<string, (number | null)[]> = {};
  for (const [site, points] of Object.entries(r.points)) {
    const by = new Map(points.map((p) => [p.at_ms, p.left]));
    columns[site] = times.map((t) => by.get(t) ?? null);
  }
  return { at: times.map((t) => t + r.skew), columns };
}

/** The tokens moved between each pair of sites since a time, most first; "" is the pool of an instance. */
export function flows(moves: readonly Move[], since: number): { from: string; to: string; tokens: number; last: number }[] {
  const by = new Map<string, { from: string; to: string; tokens: number; last: number }>();
  for (const m of moves) {
    if (m.at_ms < since || m.tokens === 0) {
      continue;
    }
    const key = `${m.from}>${m.to}`;
    const f = by.get(key) ?? { from: m.from, to: m.to, tokens: 0, last: 0 };
    by.set(key, { ...f, tokens: f.tokens + m.tokens, last: Math.max(f.last, m.at_ms) });
  }
  return [...by.values()].sort((a, b) => b.tokens - a.tokens);
}

/** Of all sites together: what was asked, granted and refused in each step. */
export function totals(r: Recent): { at: number[]; granted: number[]; refused: number[]; waited: number[]; waiting: number[] } {
  const by = new Map<number, { granted: number; refused: number; waited: number; waiting: number }>();
  for (const p of Object.values(r.points).flat()) {
    const t = by.get(p.at_ms) ?? { granted: 0, refused: 0, waited: 0, waiting: 0 };
    by.set(p.at_ms, { granted: t.granted + p.granted, refused: t.refused + p.refused, waited: t.waited + p.waited, waiting: t.waiting + p.waiting });
  }
  const all = [...by.entries()].sort((a, b) => a[0] - b[0]);
  return {
    at: all.map(([t]) => t + r.skew),
    granted: all.map(([, v]) => v.granted),
    refused: all.map(([, v]) => v.refused),
    waited: all.map(([, v]) => v.waited),
    waiting: all.map(([, v]) => v.waiting),
  };
}
