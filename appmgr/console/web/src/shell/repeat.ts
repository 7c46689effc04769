// Work that goes on while a page is open: polls and watches, each ended by a signal.

import { type Problem } from "../model/problem.js";

/** A pause that a signal ends. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

/** Resolves once the tab can be seen. */
function seen(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (!document.hidden || signal.aborted) {
      resolve();
      return;
    }
    const look = (): void => {
      if (!document.hidden || signal.aborted) {
        document.removeEventListener("visibilitychange", look);
        resolve();
      }
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look, { once: true });
  });
}

/** Repeats `once` every `ms` milliseconds while the tab can be seen; ends once `once` says false. */
export async function poll(ms: number, signal: AbortSignal, once: () => Promise<boolean>): Promise<void> {
  while (!signal.aborted) {
    await seen(signal);
    if (signal.aborted || !(await once())) {
      return;
    }
    await pause(ms, signal);
  }
}

const firstPause = 500;
const lastPause = 8_000;

/** A signal that ends with another, and once the tab is hidden. */
function whileSeen(signal: AbortSignal): AbortSignal {
  const hidden = new AbortController();
  const look = (): void => {
    if (document.hidden) {
      hidden.abort();
    }
  };
  document.addEventListener("visibilitychange", look);
  const all = AbortSignal.any([signal, hidden.signal]);
  all.addEventListener("abort", () => document.removeEventListener("visibilitychange", look), { once: true });
  return all;
}

/**
 * Keeps a watch open while the tab can be seen: browsers give all tabs of a server six connections.
 * After the end of a watch it is opened again, after pauses that grow until a line comes.
 */
export async function keep(
  signal: AbortSignal,
  open: (signal: AbortSignal, line: () => void) => Promise<Problem | null>,
  ended: (problem: Problem) => boolean,
): Promise<void> {
  let next = firstPause;
  while (!signal.aborted) {
    await seen(signal);
    const problem = await open(whileSeen(signal), () => {
      next = firstPause;
    });
    if (problem === null) {
      continue;
    }
    if (signal.aborted || !ended(problem)) {
      return;
    }
    await pause(next, signal);
    next = Math.min(2 * next, lastPause);
  }
}
