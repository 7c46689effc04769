// Calls of the API: the token, JSON, and problems as values.

import { Lines } from "../model/lines.js";
import { type Problem, problemOf, unanswered } from "../model/problem.js";

export type Answer<T> = { ok: T } | { problem: Problem } | { aborted: true };

const tokenKey = "samya-token";

/** The caller's token; it lives as long as the tab. */
export const token = {
  get: (): string => sessionStorage.getItem(tokenKey) ?? "",
  set: (value: string): void => (value === "" ? sessionStorage.removeItem(tokenKey) : sessionStorage.setItem(tokenKey, value)),
};

function headers(body: boolean): Headers {
  const h = new Headers();
  if (token.get() !== "") {
    h.set("Authorization", `Bearer ${token.get()}`);
  }
  if (body) {
    h.set("Content-Type", "application/json");
  }
  return h;
}

async function problemIn(r: Response): Promise<Problem> {
  return problemOf(r.status, await r.json().catch(() => null));
}

/** The address of a call with its query; empty values are left out. */
export function withQuery(path: string, query: Record<string, string | number | undefined>): string {
  const q = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") {
      q.set(key, String(value));
    }
  }
  return q.size === 0 ? path : `${path}?${q.toString()}`;
}

/** Makes a call and reads its answer. */
export async function call<T>(path: string, signal: AbortSignal, o: { method?: string; body?: unknown } = {}): Promise<Answer<T>> {
  try {
    const init: RequestInit = { method: o.method ?? "GET", headers: headers(o.body !== undefined), signal, cache: "no-store" };
    if (o.body !== undefined) {
      init.body = JSON.stringify(o.body);
    }
    const r = await fetch(path, init);
    if (!r.ok) {
      return { problem: await problemIn(r) };
    }
    return { ok: (r.status === 204 ? null : await r.json()) as T };
  } catch (cause) {
    return signal.aborted ? { aborted: true } : { problem: unanswered(cause) };
  }
}

/** Reads a stream of lines of JSON until its end, or until nothing came for `silence` milliseconds. */
export async function stream(path: string, signal: AbortSignal, line: (value: unknown) => void, silence = Infinity): Promise<Problem | null> {
  const mute = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heard = (): void => {
    clearTimeout(timer);
    if (silence < Infinity) {
      timer = setTimeout(() => mute.abort(), silence);
    }
  };
  try {
    heard();
    const r = await fetch(path, { headers: headers(false), signal: AbortSignal.any([signal, mute.signal]), cache: "no-store" });
    if (!r.ok || r.body === null) {
      return await problemIn(r);
    }
    const reader = r.body.getReader();
    const decoder = new TextDecoder();
    const lines = new Lines();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return unanswered(new Error("The stream has ended"));
      }
      heard();
      for (const text of lines.take(decoder.decode(value, { stream: true }))) {
        const parsed = JSON.parse(text) as { problem?: unknown };
        if (parsed.problem !== undefined) {
          return problemOf(0, parsed.problem);
        }
        line(parsed);
      }
    }
  } catch (cause) {
    if (signal.aborted) {
      return null;
    }
    return unanswered(mute.signal.aborted ? new Error(`nothing was heard for ${silence / 1000} s`) : cause);
  } finally {
    clearTimeout(timer);
  }
}
