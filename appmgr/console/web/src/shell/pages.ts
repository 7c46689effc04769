// What each page reads and watches while it is open.

import { type Activity, type Caller, type Entity, type EntityStatus, type History, type Leases, type Members, type Page, type Watched } from "../model/api.js";
import { type Problem, notOffered } from "../model/problem.js";
import { type Route, entityPath } from "../model/routes.js";
import { type Feeds } from "../model/state.js";
import { rows } from "../model/tree.js";
import { call, stream, withQuery } from "./http.js";
import { keep, poll } from "./repeat.js";
import { type Store } from "./store.js";

/** How often pages read anew what has no watch, in milliseconds. */
const often = 2_000;
const seldom = 10_000;

/** A watch of the members has a sign of life every five seconds; after this time without one it is lost. */
const silence = 15_000;

/** A call that cannot succeed by itself: the caller may not make it, or it does not exist. */
const hopeless = (p: Problem): boolean => p.status === 401 || p.status === 403 || notOffered(p);

/** The prefixes to search below: a caller of some prefixes alone must name one. */
function scopesOf(prefixes: readonly string[]): string[] {
  return prefixes.length === 0 || prefixes.includes("*") ? [""] : prefixes.map((p) => (p.endsWith("/") ? p : `${p}/`));
}

export class Pages {
  private session = new AbortController();
  private page = new AbortController();
  private searching = new AbortController();

  constructor(private readonly store: Store) {}

  /** Asks who the caller is, and begins to watch. */
  async begin(): Promise<void> {
    this.session.abort();
    this.session = new AbortController();
    const { signal } = this.session;
    await poll(often, signal, async () => {
      const got = await call<Caller>("/v1/caller", signal);
      if ("problem" in got) {
        if (got.problem.status === 401 || got.problem.status === 403) {
          this.store.dispatch({ type: "login", problem: got.problem });
          return false;
        }
        this.store.dispatch({ type: "failed", feed: "members", problem: got.problem, at: Date.now() });
        return true;
      }
      if ("ok" in got) {
        this.store.dispatch({ type: "caller", caller: got.ok });
        void this.members(signal);
        this.open(this.store.state.route);
      }
      return false;
    });
  }

  private members(signal: AbortSignal): Promise<void> {
    const { dispatch } = this.store;
    return keep(
      signal,
      (seen, told) =>
        stream("/v1/members:watch", seen, (line) => {
          told();
          const m = line as Members;
          dispatch(m.members === undefined ? { type: "alive", feed: "members", at: Date.now() } : { type: "fed", feed: "members", value: m, at: Date.now() });
        }, silence),
      (problem) => {
        dispatch({ type: "failed", feed: "members", problem, at: Date.now() });
        if (problem.reason === "UNAUTHENTICATED") {
          dispatch({ type: "login", problem });
          this.page.abort();
        }
        return !hopeless(problem);
      },
    );
  }

  /** Ends what the page before read, and begins what this one reads. */
  open(route: Route): void {
    this.page.abort();
    this.page = new AbortController();
    if (this.store.state.caller === null) {
      return;
    }
    const { signal } = this.page;
    switch (route.page) {
      case "cluster":
        this.feed("sites", "/v1/sites", often, signal);
        this.feed("survey", "/v1/sites:survey", often, signal);
        this.feed("version", "/v1/version", seldom, signal);
        this.feed("mode", "/v1/mode", seldom, signal);
        break;
      case "entity":
        this.feed("survey", "/v1/sites:survey", seldom, signal);
        this.entity(route.name, signal);
        break;
      case "incidents":
        this.feed("doctor", "/v1/doctor", seldom, signal);
        break;
      case "admin":
        void this.subject(route.name, signal);
        break;
      case "search":
        break;
    }
  }

  private feed<K extends keyof Feeds>(feed: K, path: string, every: number, signal: AbortSignal): void {
    void poll(every, signal, async () => {
      const got = await call<NonNullable<Feeds[K]["value"]>>(path, signal);
      if ("ok" in got) {
        this.store.dispatch({ type: "fed", feed, value: got.ok, at: Date.now() } as never);
      } else if ("problem" in got) {
        this.store.dispatch({ type: "failed", feed, problem: got.problem, at: Date.now() });
        return !hopeless(got.problem);
      }
      return true;
    });
  }

  private entity(name: string, signal: AbortSignal): void {
    const { dispatch } = this.store;
    const fail = (what: "status" | "activity" | "leases" | "history") => (problem: Problem) =>
      dispatch({ type: "entity/failed", name, what, problem, at: Date.now() });
    void this.first(name, signal);
    void this.watch(name, signal);
    this.every<Activity>(often, signal, () => withQuery(entityPath(name, "activity"), { since_ms: this.recent() }), (activity) => dispatch({ type: "entity/activity", name, activity, at: Date.now() }), fail("activity"));
    this.every<Leases>(seldom / 2, signal, () => withQuery("/v1/leases", { entity: name, page_size: 100 }), (leases) => dispatch({ type: "entity/leases", name, leases, at: Date.now() }), fail("leases"));
    this.every<History>(seldom / 2, signal, () => entityPath(name, "history"), (history) => dispatch({ type: "entity/history", name, history, at: Date.now() }), fail("history"));
    void poll(seldom / 2, signal, () => this.usage(name, signal));
  }

  private recent(): number | undefined {
    return this.store.state.entity?.recent.upTo || undefined;
  }

  private every<T>(ms: number, signal: AbortSignal, path: () => string, ok: (value: T) => void, failed: (p: Problem) => void): void {
    void poll(ms, signal, async () => {
      const got = await call<T>(path(), signal);
      if ("ok" in got) {
        ok(got.ok);
      } else if ("problem" in got) {
        failed(got.problem);
        return !hopeless(got.problem);
      }
      return true;
    });
  }

  /** The first read: all sites are asked, and the entities above and below. */
  private async first(name: string, signal: AbortSignal): Promise<void> {
    const { dispatch } = this.store;
    const got = await call<EntityStatus>(entityPath(name), signal);
    if ("problem" in got) {
      dispatch({ type: "entity/failed", name, what: "status", problem: got.problem, at: Date.now() });
      return;
    }
    if ("aborted" in got) {
      return;
    }
    if (this.store.state.entity?.status.value === null) {
      dispatch({ type: "entity/status", name, status: got.ok, deleted: false, watched: false, at: Date.now() });
    }
    if ((got.ok.children ?? 0) > 0) {
      void this.children(name, name, "");
    }
    const above: Entity[] = [];
    for (let parent = got.ok.parent ?? ""; parent !== "" && above.length < 16; ) {
      const up = await call<EntityStatus>(withQuery(entityPath(parent), { consistency: "local" }), signal);
      if (!("ok" in up)) {
        break;
      }
      above.push(up.ok);
      parent = up.ok.parent ?? "";
    }
    dispatch({ type: "entity/above", name, above });
  }

  private watch(name: string, signal: AbortSignal): Promise<void> {
    const { dispatch } = this.store;
    let resume = "";
    return keep(
      signal,
      (seen, told) =>
        stream(withQuery(entityPath(name, "watch"), { resume_token: resume }), seen, (line) => {
          told();
          const w = line as Watched;
          resume = w.resume_token;
          dispatch({ type: "entity/status", name, status: w, deleted: w.deleted, watched: true, at: Date.now() });
        }),
      (problem) => {
        const deleted = this.store.state.entity?.deleted === true;
        if (!deleted) {
          dispatch({ type: "entity/failed", name, what: "status", problem, at: Date.now() });
        }
        return !deleted && !hopeless(problem) && problem.reason !== "ENTITY_NOT_FOUND" && problem.reason !== "INVALID_FIELD";
      },
    );
  }

  /** Reads a page of the children of an entity of the tree. */
  async children(name: string, parent: string, next: string): Promise<void> {
    const got = await call<Page>(withQuery("/v1/entities", { parent, page_size: 50, page_token: next }), this.page.signal);
    if ("ok" in got) {
      this.store.dispatch({ type: "entity/children", name, parent, page: got.ok, further: next !== "" });
    }
  }

  /** Reads the figures of the entities of the tree that are shown. */
  private async usage(name: string, signal: AbortSignal): Promise<boolean> {
    const view = this.store.state.entity;
    const shown = view === null ? [] : [...view.above, ...rows(view.tree).filter((r) => r.more === undefined).map((r) => r.entity)];
    const wanted = shown.filter((e) => e.name !== name).slice(0, 30);
    const reads = await Promise.all(wanted.map((e) => call<EntityStatus>(withQuery(entityPath(e.name), { consistency: "bounded", max_age: "30s" }), signal)));
    const usage = reads.flatMap((r) => ("ok" in r ? [r.ok] : []));
    if (usage.length > 0) {
      this.store.dispatch({ type: "entity/usage", name, usage });
    }
    return true;
  }

  /** Reads the entity whose limit is to be changed. */
  async subject(name: string, signal: AbortSignal = this.page.signal): Promise<void> {
    if (name === "") {
      return;
    }
    const got = await call<EntityStatus>(entityPath(name), signal);
    if ("ok" in got) {
      this.store.dispatch({ type: "subject", status: got.ok, at: Date.now() });
    } else if ("problem" in got) {
      this.store.dispatch({ type: "subject/failed", problem: got.problem, at: Date.now() });
    }
  }

  /** Searches by a part of the name, or lists the entities without a parent; `next` goes on after the results so far. */
  async search(query: string, next = ""): Promise<void> {
    this.searching.abort();
    this.searching = new AbortController();
    const { signal } = this.searching;
    const { dispatch } = this.store;
    dispatch({ type: "search/ask", query });
    const what = query === "" ? { top: "true" } : { contains: query };
    const began = performance.now();
    const scopes = scopesOf(this.store.state.caller?.prefixes ?? []);
    let found: Entity[] = [];
    let [scope, token] = [0, next];
    if (next.includes(" ")) {
      [scope, token] = [Number(next.slice(0, next.indexOf(" "))), next.slice(next.indexOf(" ") + 1)];
    }
    // A page may be empty before the end of the list, as each page has a bounded scan.
    for (let scans = 0; scans < 20 + scopes.length; scans++) {
      const got = await call<Page>(withQuery("/v1/entities", { ...what, prefix: scopes[scope], page_size: 20, page_token: token }), signal);
      if ("problem" in got) {
        dispatch({ type: "search/failed", query, problem: got.problem });
      }
      if (!("ok" in got)) {
        return;
      }
      found = [...found, ...got.ok.entities];
      token = got.ok.next_page_token;
      if (token === "" && scope + 1 < scopes.length) {
        scope++;
        continue;
      }
      if (found.length >= 20 || token === "") {
        break;
      }
    }
    dispatch({ type: "search/found", query, page: { entities: found, next_page_token: token === "" ? "" : `${scope} ${token}` }, further: next !== "", took: performance.now() - began });
  }

  end(): void {
    this.session.abort();
    this.page.abort();
  }
}
