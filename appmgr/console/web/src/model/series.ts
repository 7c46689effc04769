// Samples over time: rows of figures with a time each, bounded in number.

/** Rows of figures, oldest first; a figure that is not known is null. */
export interface Series {
  readonly at: readonly number[];
  readonly columns: Readonly<Record<string, readonly (number | null)[]>>;
}

export const noSeries: Series = { at: [], columns: {} };

/** Adds a row. A row of the time of the last one replaces it, older rows beyond `most` go. */
export function addRow(s: Series, at: number, row: Readonly<Record<string, number | null>>, most: number): Series {
  const last = s.at.at(-1);
  if (last !== undefined && at < last) {
    return s;
  }
  const replace = last === at;
  const kept = replace ? s.at.slice(0, -1) : s.at;
  const from = Math.max(0, kept.length + 1 - most);
  const columns: Record<string, (number | null)[]> = {};
  for (const name of new Set([...Object.keys(s.columns), ...Object.keys(row)])) {
    const before = s.columns[name] ?? Array<null>(s.at.length).fill(null);
    columns[name] = [...(replace ? before.slice(0, -1) : before).slice(from), row[name] ?? null];
  }
  return { at: [...kept.slice(from), at], columns };
}

/** Puts older rows before those there are; rows that are not older are left out. */
export function prepend(s: Series, older: Series, most: number): Series {
  const first = s.at[0] ?? Infinity;
  const n = older.at.filter((t) => t < first).length;
  if (n === 0) {
    return s;
  }
  const from = Math.max(0, n + s.at.length - most);
  const columns: Record<string, (number | null)[]> = {};
  for (const name of new Set([...Object.keys(older.columns), ...Object.keys(s.columns)])) {
    const a = (older.columns[name] ?? Array<null>(older.at.length).fill(null)).slice(0, n);
    const b = s.columns[name] ?? Array<null>(s.at.length).fill(null);
    columns[name] = [...a, ...b].slice(from);
  }
  return { at: [...older.at.slice(0, n), ...s.at].slice(from), columns };
}

/** The columns one on top of the other, in the order given; what is not known adds nothing. */
export function stack(columns: readonly (readonly (number | null)[])[]): (number | null)[][] {
  const sums: (number | null)[][] = [];
  columns.forEach((column, i) => {
    sums.push(column.map((v, row) => (i === 0 ? v : v === null && sums[i - 1]?.[row] === null ? null : (sums[i - 1]?.[row] ?? 0) + (v ?? 0))));
  });
  return sums;
}

/** The end of a scale that begins at zero: the next of 1, 2, 2.5, 5 times a power of ten. */
export function niceEnd(most: number): number {
  if (!(most > 0)) {
    return 1;
  }
  const power = 10 ** Math.floor(Math.log10(most));
  for (const step of [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10]) {
    if (step * power >= most * 1.02) {
      return step * power;
    }
  }
  return 15 * power;
}

/** The lowest and highest ends of a scale for values that may be negative. */
export function niceRange(columns: readonly (readonly (number | null)[])[]): [number, number] {
  let [low, high] = [0, 0];
  for (const column of columns) {
    for (const v of column) {
      if (v !== null) {
        low = Math.min(low, v);
        high = Math.max(high, v);
      }
    }
  }
  return [low < 0 ? -niceEnd(-low) : 0, niceEnd(high)];
}
