// Where the sites stand in the picture of the cluster: near each other if their latency is low.
// Stress majorization (SMACOF) from a circle, so that the same latencies give the same picture.

export interface Place {
  readonly name: string;
  /** From 0, left or top, to 1, right or bottom. */
  readonly x: number;
  readonly y: number;
}

const rounds = 300;

/** Lays sites out by their latencies in milliseconds; undefined: not known. */
export function layout(names: readonly string[], latencyOf: (a: string, b: string) => number | undefined): Place[] {
  const n = names.length;
  if (n === 0) {
    return [];
  }
  const want = distances(names, latencyOf);
  let at = names.map((_, i) => ({ x: Math.cos((2 * Math.PI * i) / n), y: Math.sin((2 * Math.PI * i) / n) }));
  for (let round = 0; round < rounds && n > 1; round++) {
    at = at.map((p, i) => {
      let [x, y] = [0, 0];
      at.forEach((q, j) => {
        if (i === j) {
          return;
        }
        const d = Math.hypot(p.x - q.x, p.y - q.y) || 1e-9;
        const scale = (want[i]?.[j] ?? 1) / d;
        x += q.x + (p.x - q.x) * scale;
        y += q.y + (p.y - q.y) * scale;
      });
      return { x: x / (n - 1), y: y / (n - 1) };
    });
  }
  return fit(names, at);
}

/** Wanted distances: the root of latencies, which spreads near sites and draws far ones in. */
function distances(names: readonly string[], latencyOf: (a: string, b: string) => number | undefined): number[][] {
  const of = (a: string, b: string): number | undefined => {
    const known = [latencyOf(a, b), latencyOf(b, a)].filter((v) => v !== undefined);
    return known.length === 0 ? undefined : Math.sqrt(known.reduce((s, v) => s + v, 0) / known.length);
  };
  const all = names.flatMap((a, i) => names.slice(i + 1).map((b) => of(a, b)).filter((v) => v !== undefined));
  const most = Math.max(...all, 0) || 1;
  const usual = all.length === 0 ? 0.8 : all.reduce((s, v) => s + v, 0) / all.length / most;
  // No two sites stand on top of each other, however low their latency.
  return names.map((a) => names.map((b) => Math.max(0.35, (of(a, b) ?? usual * most) / most)));
}

/** Turns the long axis level, and fits all into the unit square. */
function fit(names: readonly string[], at: readonly { x: number; y: number }[]): Place[] {
  const [cx, cy] = [mean(at.map((p) => p.x)), mean(at.map((p) => p.y))];
  let [xx, xy, yy] = [0, 0, 0];
  for (const p of at) {
    xx += (p.x - cx) ** 2;
    xy += (p.x - cx) * (p.y - cy);
    yy += (p.y - cy) ** 2;
  }
  const turn = -0.5 * Math.atan2(2 * xy, xx - yy);
  const turned = at.map((p) => ({
    x: (p.x - cx) * Math.cos(turn) - (p.y - cy) * Math.sin(turn),
    y: (p.x - cx) * Math.sin(turn) + (p.y - cy) * Math.cos(turn),
  }));
  const unit = (values: number[]): number[] => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return values.map((v) => (high - low < 1e-6 ? 0.5 : (v - low) / (high - low)));
  };
  const [xs, ys] = [unit(turned.map((p) => p.x)), unit(turned.map((p) => p.y))];
  return names.map((name, i) => ({ name, x: xs[i] ?? 0.5, y: ys[i] ?? 0.5 }));
}

const mean = (values: number[]): number => values.reduce((s, v) => s + v, 0) / values.length;

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly wide: number;
  readonly high: number;
}

/** By how much two boxes, given by their centres, overlap: an area. */
export function overlap(a: Box, b: Box): number {
  const wide = (a.wide + b.wide) / 2 - Math.abs(a.x - b.x);
  const high = (a.high + b.high) / 2 - Math.abs(a.y - b.y);
  return wide > 0 && high > 0 ? wide * high : 0;
}

/** The parts of a line at which its label may stand, the best first. */
const spots = [0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.27, 0.73];

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A way from a point to another, straight or bent towards a third. */
export interface Way {
  readonly from: Point;
  readonly to: Point;
  readonly bend?: Point;
  /** The width of its label. */
  readonly wide: number;
}

/** The point at a part of a way, from 0 to 1. */
export function along(w: Way, t: number): Point {
  const bend = w.bend ?? { x: (w.from.x + w.to.x) / 2, y: (w.from.y + w.to.y) / 2 };
  const of = (a: number, b: number, c: number): number => (1 - t) ** 2 * a + 2 * t * (1 - t) * b + t ** 2 * c;
  return { x: of(w.from.x, bend.x, w.to.x), y: of(w.from.y, bend.y, w.to.y) };
}

/** Places a label on each way, clear of other labels and of what stands there already. */
export function labels(ways: readonly Way[], high: number, taken: readonly Box[]): Box[] {
  const placed: Box[] = [];
  for (const w of ways) {
    const boxes = spots.map((t) => ({ ...along(w, t), wide: w.wide, high }));
    const cost = (b: Box): number => [...taken, ...placed].reduce((a, o) => a + overlap(b, o), 0);
    let best = boxes[0]!;
    for (const b of boxes) {
      if (cost(b) < cost(best)) {
        best = b;
      }
    }
    placed.push(best);
  }
  return placed;
}

/** The place among the sites that is farthest from all of them. */
export function freeSpot(places: readonly Place[]): { x: number; y: number } {
  let [best, far] = [{ x: 0.5, y: 0.5 }, -1];
  for (let x = 0.2; x <= 0.81; x += 0.1) {
    for (let y = 0.1; y <= 0.91; y += 0.1) {
      const near = Math.min(1, ...places.map((p) => Math.hypot(p.x - x, (p.y - y) * 0.6)));
      if (near > far + 1e-9) {
        [best, far] = [{ x, y }, near];
      }
    }
  }
  return best;
}
