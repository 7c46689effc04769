/** A signal that is aborted with the first of others; `unlink` forgets them. */
export function linked(...signals: (AbortSignal | undefined)[]): { signal: AbortSignal; abort: () => void; unlink: () => void } {
  // AbortSignal.any keeps its result for as long as its sources live.
  const all = new AbortController();
  const abort = (): void => all.abort();
  for (const s of signals) {
    if (s?.aborted) {
      abort();
    }
    s?.addEventListener("abort", abort, { once: true });
  }
  return { signal: all.signal, abort, unlink: () => signals.forEach((s) => s?.removeEventListener("abort", abort)) };
}
