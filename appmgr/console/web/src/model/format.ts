// Numbers and times as the console shows them: each with its unit.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const one = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

/** Nothing is known. */
export const unknown = "–";

/** A whole number with separators. */
export const count = (n: number | null | undefined): string => (n === null || n === undefined ? unknown : whole.format(n));

/** A number and its noun: "1 token", "2 tokens". */
export const counted = (n: number, noun: string, many = `${noun}s`): string => `${whole.format(n)} ${n === 1 ? noun : many}`;

/** A number in at most five characters, for tight places: 950, 1.2 k, 12 M. */
export function short(n: number | null | undefined): string {
  if (n === null || n === undefined) {
    return unknown;
  }
  const size = Math.abs(n);
  for (const [unit, sign] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    if (size >= unit) {
      const v = n / unit;
      return `${Math.abs(v) < 10 ? one.format(v) : whole.format(v)} ${sign}`;
    }
  }
  return Number.isInteger(n) ? whole.format(n) : one.format(n);
}

/** A rate per second. */
export const rate = (n: number | null | undefined): string => (n === null || n === undefined ? unknown : `${n < 10 ? one.format(n) : whole.format(n)}/s`);

/** A part of a whole, in percent. */
export const percent = (part: number, all: number): string => (all > 0 ? `${one.format((100 * part) / all)} %` : unknown);

/** A latency in milliseconds. */
export function latency(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) {
    return unknown;
  }
  if (ms < 0.1) {
    return "< 0.1 ms";
  }
  return `${ms < 10 ? one.format(ms) : whole.format(ms)} ms`;
}

/** A span of time in its two largest units: 52 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
export function span(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  const [d, h, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  if (d > 0) {
    return h > 0 ? `${d} d ${h} h` : `${d} d`;
  }
  if (h > 0) {
    return m > 0 ? `${h} h ${m} min` : `${h} h`;
  }
  if (m > 0) {
    return s % 60 > 0 ? `${m} min ${s % 60} s` : `${m} min`;
  }
  return `${s} s`;
}

const two = (n: number): string => String(n).padStart(2, "0");

/** The time of a day, in the reader's zone. */
export function clock(ms: number): string {
  const d = new Date(ms);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** The time of a day to the tenth of a second, for rows that are closer than a second. */
export const fineClock = (ms: number): string => `${clock(ms)}.${Math.floor((((ms % 1000) + 1000) % 1000) / 100)}`;

/** Day and time, in the reader's zone. */
export function moment(ms: number): string {
  const d = new Date(ms);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(ms)}`;
}
