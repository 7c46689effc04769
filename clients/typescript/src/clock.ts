import { type Now } from "./call.js";

/** Time, handed in so that tests need not wait. */
export interface Clock {
  now(): Now;
  /** Calls f after a time in milliseconds; the result keeps f from being called. */
  after(ms: number, f: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => ({ mono: performance.now(), wall: Date.now() }),
  after: (ms, f) => {
    const timer = setTimeout(f, Math.max(0, ms));
    return () => clearTimeout(timer);
  },
};

/** Waits for a time, or until the signal is aborted. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const done = (): void => {
      stop();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const stop = clock.after(ms, done);
    signal.addEventListener("abort", done, { once: true });
  });
}
