import { setMaxListeners } from "node:events";

/** A signal that is aborted with the first of others; `unlink` forgets them. */
export function linked(...signals: (AbortSignal | undefined)[]): { signal: AbortSignal; abort: () => void; unlink: () => void } {
  // AbortSignal.any keeps its result for as long as its sources live.
  const all = new AbortController();
  const abort = (): void => all.abort();
  for (const s of signals) {
    if (s?.aborted) {
      abort();
    }
    if (s !== undefined) {
      // Any number of calls may be under way with the same signal: each listens, and none leaks.
      setMaxListeners(0, s);
      s.addEventListener("abort", abort, { once: true });
    }
  }
  return { signal: all.signal, abort, unlink: () => signals.forEach((s) => s?.removeEventListener("abort", abort)) };
}

/** The result of a promise; rejects once the signal is aborted. */
export async function within<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort = (): void => undefined;
  try {
    return await Promise.race([promise, new Promise<never>((_, reject) => {
      abort = () => reject(new Error("its time was over"));
      signal.addEventListener("abort", abort, { once: true });
    })]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
