// Dry runs and changes of the page of administration.

import { type Changed } from "../model/api.js";
import { type Request, fingerprint } from "../model/draft.js";
import { call } from "./http.js";
import { type Store } from "./store.js";

export async function tryOut(store: Store, r: Request): Promise<void> {
  store.dispatch({ type: "draft/busy", what: "dry run" });
  const got = await call<Changed>(r.path, new AbortController().signal, { method: r.method, body: { ...r.body, dry_run: true } });
  if ("ok" in got) {
    store.dispatch({ type: "draft/tried", of: fingerprint(r), answer: got.ok });
  } else if ("problem" in got) {
    store.dispatch({ type: "draft/failed", problem: got.problem });
  }
}

export async function apply(store: Store, r: Request): Promise<void> {
  store.dispatch({ type: "draft/busy", what: "change" });
  const got = await call<Changed>(r.path, new AbortController().signal, { method: r.method, body: r.body });
  if ("ok" in got) {
    store.dispatch({ type: "draft/done", answer: got.ok });
  } else if ("problem" in got) {
    store.dispatch({ type: "draft/failed", problem: got.problem });
  }
}
