// Rates from the counters of a survey: the difference of two answers over the time between them.

import { type Survey, type Surveyed } from "./api.js";

export interface Rates {
  granted: number | null;
  refused: number | null;
}

/** The rates per second of a site between two surveys; null after a restart or without an answer. */
export function ratesOf(before: Surveyed | undefined, now: Surveyed, ms: number): Rates {
  const per = (a: number | undefined, b: number): number | null => (a === undefined || b < a || ms <= 0 ? null : ((b - a) * 1000) / ms);
  if (!now.known || before?.known !== true || now.up_ms < before.up_ms) {
    return { granted: null, refused: null };
  }
  return { granted: per(before.acquires_granted, now.acquires_granted), refused: per(before.acquires_refused, now.acquires_refused) };
}

/** The rates of all sites by name. */
export function allRates(before: Survey | null, now: Survey, ms: number): Record<string, Rates> {
  return Object.fromEntries(now.sites.map((s) => [s.site, ratesOf(before?.sites.find((b) => b.site === s.site), s, ms)]));
}

/** A sum that is known as far as any part is. */
export function sum(values: Iterable<number | null | undefined>): number | null {
  let total: number | null = null;
  for (const v of values) {
    if (v !== null && v !== undefined) {
      total = (total ?? 0) + v;
    }
  }
  return total;
}
