// A chart as data: what the drawing and the table of the same numbers both read.

import { niceRange, stack } from "./series.js";

export interface Line {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** The place in the palette; -1: grey, -2: the colour of faults. */
  readonly color: number;
  readonly look: "area" | "line" | "dashes" | "low" | "high";
  /** How far its last value lies ahead of now, such as "in 30 s"; unset: the last value is of now. */
  readonly ahead?: string;
}

export interface ChartModel {
  readonly title: string;
  /** The unit of all values, such as "tokens" or "tokens/s". */
  readonly unit: string;
  /** Times in milliseconds, oldest first. */
  readonly at: readonly number[];
  readonly lines: readonly Line[];
  /** The areas stand one on top of the other. */
  readonly stacked: boolean;
  /** The longest span of time shown, in milliseconds, up to the last time. */
  readonly window: number;
}

export interface Drawn {
  /** Times in seconds, then the values of each line as drawn. */
  readonly data: [number[], ...(number | null)[][]];
  readonly range: [number, number];
  readonly from: number;
  readonly to: number;
}

/** The shortest span of time shown, in milliseconds: a chart that begins fills up from the right. */
const leastWindow = 20_000;

/** The numbers as drawn: times in seconds, areas stacked, and the ends of both scales. */
export function drawn(m: ChartModel): Drawn {
  const to = (m.at.at(-1) ?? 0) / 1000;
  const known = (m.at.at(-1) ?? 0) - (m.at[0] ?? 0);
  const from = to - Math.min(m.window, Math.max(leastWindow, known)) / 1000;
  const begin = Math.max(0, m.at.findIndex((t) => t / 1000 >= from) - 1);
  const cut = m.lines.map((l) => l.values.slice(begin));
  const areas = m.lines.map((l, i) => (l.look === "area" ? i : -1)).filter((i) => i >= 0);
  const values: (number | null)[][] = cut.map((c) => [...c]);
  if (m.stacked) {
    stack(areas.map((i) => cut[i] ?? [])).forEach((c, k) => {
      values[areas[k] ?? 0] = c;
    });
  }
  return { data: [m.at.slice(begin).map((t) => t / 1000), ...values], range: niceRange(values), from, to };
}

/** The rows of the table: newest first. */
export function tableRows(m: ChartModel, most: number): { at: number; values: (number | null)[] }[] {
  const rows = m.at.map((at, i) => ({ at, values: m.lines.map((l) => l.values[i] ?? null) }));
  return rows.slice(-most).reverse();
}

/** What the chart shows, in a sentence. */
export function summary(m: ChartModel, show: (n: number | null) => string): string {
  const last = m.lines.map((l) => `${l.label} ${show(l.values.at(-1) ?? null)}`);
  return m.at.length === 0 ? `${m.title}: no figures yet.` : `${m.title} in ${m.unit}. Latest: ${last.join(", ")}. The table has all figures.`;
}

/** Repeats the last row at a later time, so that a quiet line goes on until now. */
export function until(m: ChartModel, now: number): ChartModel {
  const last = m.at.at(-1);
  if (last === undefined || now - last < 250) {
    return m;
  }
  return { ...m, at: [...m.at, now], lines: m.lines.map((l) => ({ ...l, values: [...l.values, l.values.at(-1) ?? null] })) };
}
