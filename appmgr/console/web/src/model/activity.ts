// What the sites tell of an entity's last minutes: demand, forecasts and moves of tokens.

import { type Activity, type Move, type Point } from "./api.js";
import { type Series } from "./series.js";

/** How many points of a site and moves are kept. */
export const mostPoints = 320;
export const mostMoves = 200;

export interface Recent {
  /** The points of each site, oldest first. */
  readonly points: Readonly<Record<string, readonly Point[]>>;
  /** The moves of tokens, newest first. */
  readonly moves: readonly Move[];
  readonly models: Readonly<Record<string, string>>;
  readonly missing: readonly string[];
  /** The time of the last answer by the clock of the cluster; 0: none. */
  readonly upTo: number;
  /** What to add to a time of the cluster to get one of the reader. */
  readonly skew: number;
}

export const noRecent: Recent = { points: {}, moves: [], models: {}, missing: [], upTo: 0, skew: 0 };

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
      // Both ends tell a transfer; the receiver counts.
      moves = mergeMoves(moves, (s.moves ?? []).filter((m) => m.to === s.site || m.to === ""));
      models[s.site] = s.model ?? "";
    }
  }
  const skew = Math.abs(at - a.now_ms) < sameClock ? 0 : r.skew !== 0 ? r.skew : at - a.now_ms;
  const missing = a.sites.filter((s) => !s.known).map((s) => s.site);
  return { points, moves, models, missing, upTo: a.now_ms, skew };
}

function mergePoints(old: readonly Point[], fresh: readonly Point[]): readonly Point[] {
  const by = new Map(old.map((p) => [p.at_ms, p]));
  for (const p of fresh) {
    by.set(p.at_ms, p);
  }
  return [...by.values()].sort((a, b) => a.at_ms - b.at_ms).slice(-mostPoints);
}

const keyOf = (m: Move): string => `${m.from}|${m.to}|${m.by}|${m.at_ms}|${m.tokens}`;

function mergeMoves(old: readonly Move[], fresh: readonly Move[]): readonly Move[] {
  const by = new Map([...old, ...fresh].map((m) => [keyOf(m), m]));
  return [...by.values()].sort((a, b) => b.at_ms - a.at_ms).slice(0, mostMoves);
}

/** The tokens left of each site as rows a second apart, to fill in the time before the watch. */
export function leftSeries(r: Recent): Series {
  const { at, rows } = grid(r, (p) => p.left);
  return { at: at.map((t) => t + r.skew), columns: rows };
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

/** The distance of rows, in milliseconds; the sites' points come about once a second, each by its own clock. */
const step = 1000;

/** How many steps a figure holds if the next one is missing. */
const holds = 3;

const bin = (ms: number): number => Math.round(ms / step);

/** A figure of all sites in rows a step apart; a figure that is missing for long is null. */
function grid(r: Recent, of: (p: Point) => number): { at: number[]; rows: Record<string, (number | null)[]> } {
  const all = Object.values(r.points).filter((p) => p.length > 0);
  if (all.length === 0) {
    return { at: [], rows: {} };
  }
  const first = Math.min(...all.map((p) => bin(p[0]!.at_ms)));
  const last = Math.max(...all.map((p) => bin(p.at(-1)!.at_ms)));
  const at = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  const rows = Object.fromEntries(Object.entries(r.points).map(([site, points]) => [site, held(points.map((p) => [bin(p.at_ms), of(p)]), first, last)]));
  return { at, rows };
}

/** Values by bin as a row from the first bin to the last; a value holds for some bins. */
function held(values: readonly (readonly [number, number])[], first: number, last: number): (number | null)[] {
  const by = new Map(values);
  const out: (number | null)[] = [];
  let [value, since]: [number | null, number] = [null, 0];
  for (let b = first; b <= last; b++) {
    const v = by.get(b);
    if (v !== undefined) {
      [value, since] = [v, b];
    }
    out.push(value !== null && b - since < holds ? value : null);
  }
  return out;
}

const perSecond = (tokens: number, p: Point): number => (p.took_ms > 0 ? (tokens * 1000) / p.took_ms : 0);

/** Of all sites together: tokens granted and refused a second, and acquires waiting. */
export function totals(r: Recent): { at: number[]; granted: (number | null)[]; refused: (number | null)[]; waiting: (number | null)[] } {
  const add = (of: (p: Point) => number): { at: number[]; sum: (number | null)[] } => {
    const { at, rows } = grid(r, of);
    return {
      at,
      sum: at.map((_, i) => {
        const known = Object.values(rows).flatMap((row) => (row[i] === null || row[i] === undefined ? [] : [row[i]]));
        return known.length === 0 ? null : known.reduce((a, b) => a + b, 0);
      }),
    };
  };
  const [granted, refused, waiting] = [add((p) => perSecond(p.granted, p)), add((p) => perSecond(p.refused, p)), add((p) => p.waiting)];
  return { at: granted.at.map((t) => t + r.skew), granted: granted.sum, refused: refused.sum, waiting: waiting.sum };
}

export interface Outlook {
  readonly at: readonly number[];
  /** Tokens out through the site. */
  readonly net: readonly (number | null)[];
  /** What was expected for this time, one horizon before. */
  readonly expected: readonly (number | null)[];
  /** Where the peak up to this time was expected, one horizon before. */
  readonly low: readonly (number | null)[];
  readonly high: readonly (number | null)[];
  /** The horizon of the latest forecast, in milliseconds; 0: none. */
  readonly horizon: number;
}

/** A site's tokens out against the forecasts of them, each drawn at the time that it is about. */
export function outlook(r: Recent, site: string): Outlook {
  const points = r.points[site] ?? [];
  const told = points.flatMap((p) => (p.forecast === null ? [] : [{ p, f: p.forecast }]));
  const horizon = told.at(-1)?.f.horizon_ms ?? 0;
  if (points.length === 0) {
    return { at: [], net: [], expected: [], low: [], high: [], horizon };
  }
  const first = bin(points[0]!.at_ms);
  const last = bin(points.at(-1)!.at_ms + horizon);
  const at = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step + r.skew);
  const net = held(points.map((p) => [bin(p.at_ms), p.net]), first, bin(points.at(-1)!.at_ms));
  const shifted = (of: (x: (typeof told)[number]) => number): (number | null)[] => held(told.map((x) => [bin(x.p.at_ms + x.f.horizon_ms), of(x)]), first, last);
  return {
    at,
    net: [...net, ...at.slice(net.length).map(() => null)],
    expected: shifted((x) => x.p.net + x.f.expected),
    low: shifted((x) => x.p.net + x.f.median),
    high: shifted((x) => x.p.net + x.f.high),
    horizon,
  };
}
