// The state of the console and how events change it. Everything that a page shows is here;
// reduce is the only writer.

import { type Activity, type Caller, type Entity, type EntityStatus, type History, type Leases, type Members, type Mode, type Page, type Report, type Sites, type Survey, type Version } from "./api.js";
import { type Recent, addActivity, leftSeries, noRecent } from "./activity.js";
import { type Draft, type DraftEvent, reduceDraft } from "./draft.js";
import { type Feed, alive, failed, fed, noFeed } from "./feed.js";
import { type Place, layout } from "./graph.js";
import { type Problem } from "./problem.js";
import { type Rates, allRates } from "./rates.js";
import { type Route } from "./routes.js";
import { type Series, addRow, noSeries, prepend } from "./series.js";
import { type Tree, grow, noTree, turn } from "./tree.js";

/** How many rows of figures are kept: five minutes of half seconds. */
export const mostRows = 600;

/** The distance of two rows of shares, in milliseconds. */
const rowEvery = 500;

export interface Feeds {
  sites: Feed<Sites>;
  members: Feed<Members>;
  version: Feed<Version>;
  mode: Feed<Mode>;
  survey: Feed<Survey>;
  doctor: Feed<Report>;
}

export interface EntityView {
  readonly name: string;
  readonly status: Feed<EntityStatus>;
  readonly deleted: boolean;
  /** The tokens left of each site, as watched. */
  readonly shares: Series;
  readonly activity: Feed<null>;
  readonly recent: Recent;
  readonly leases: Feed<Leases>;
  readonly history: Feed<History>;
  /** The entities above, the nearest first. */
  readonly above: readonly Entity[];
  readonly tree: Tree;
  /** Latest reads of other entities of the tree. */
  readonly usage: Readonly<Record<string, EntityStatus>>;
}

export interface SearchView {
  readonly query: string;
  readonly results: readonly Entity[];
  readonly next: string;
  readonly busy: boolean;
  /** How long the last answer took, in milliseconds. */
  readonly took: number | null;
  readonly problem: Problem | null;
}

export type Theme = "auto" | "light" | "dark";

export interface State extends Feeds {
  readonly now: number;
  readonly route: Route;
  readonly caller: Caller | null;
  /** Set while a token is asked for. */
  readonly login: { readonly problem: Problem | null } | null;
  readonly picture: Picture;
  readonly rates: Readonly<Record<string, Rates>>;
  /** Acquires granted a second by site, and "refused" of all sites. */
  readonly rateSeries: Series;
  readonly entity: EntityView | null;
  readonly search: SearchView;
  readonly draft: Draft | null;
  /** The entity whose limit is to be changed. */
  readonly subject: Feed<EntityStatus>;
  readonly help: boolean;
  readonly theme: Theme;
}

const noSearch: SearchView = { query: "", results: [], next: "", busy: false, took: null, problem: null };

export function initial(now: number, route: Route, theme: Theme): State {
  const blank: State = {
    now, route, theme, caller: null, login: null, picture: { names: "", pairs: 0, places: [] }, rates: {}, rateSeries: noSeries, entity: null, search: noSearch, draft: null,
    subject: noFeed, help: false, sites: noFeed, members: noFeed, version: noFeed, mode: noFeed, survey: noFeed, doctor: noFeed,
  };
  return routed(blank, route);
}

export type Event =
  | DraftEvent
  | { type: "tick"; now: number }
  | { type: "route"; route: Route }
  | { type: "caller"; caller: Caller }
  | { type: "login"; problem: Problem | null }
  | { type: "theme"; theme: Theme }
  | { type: "help"; open: boolean }
  | { [K in keyof Feeds]: { type: "fed"; feed: K; value: NonNullable<Feeds[K]["value"]>; at: number } }[keyof Feeds]
  | { type: "alive"; feed: keyof Feeds; at: number }
  | { type: "failed"; feed: keyof Feeds; problem: Problem; at: number }
  | { type: "search/ask"; query: string }
  | { type: "search/found"; query: string; page: Page; further: boolean; took: number }
  | { type: "search/failed"; query: string; problem: Problem }
  | { type: "subject"; status: EntityStatus; at: number }
  | { type: "subject/failed"; problem: Problem; at: number }
  | { type: "entity/status"; name: string; status: EntityStatus; deleted: boolean; watched: boolean; at: number }
  | { type: "entity/failed"; name: string; what: "status" | "activity" | "leases" | "history"; problem: Problem; at: number }
  | { type: "entity/activity"; name: string; activity: Activity; at: number }
  | { type: "entity/leases"; name: string; leases: Leases; at: number }
  | { type: "entity/history"; name: string; history: History; at: number }
  | { type: "entity/above"; name: string; above: readonly Entity[] }
  | { type: "entity/children"; name: string; parent: string; page: Page; further: boolean }
  | { type: "entity/turn"; name: string; child: string; open: boolean }
  | { type: "entity/usage"; name: string; usage: readonly EntityStatus[] };

/** The state after an event. */
export function reduce(s: State, e: Event): State {
  switch (e.type) {
    case "tick":
      return { ...s, now: e.now };
    case "route":
      return routed(s, e.route);
    case "caller":
      return { ...s, caller: e.caller, login: null };
    case "login":
      return { ...s, login: { problem: e.problem } };
    case "theme":
      return { ...s, theme: e.theme };
    case "help":
      return { ...s, help: e.open };
    case "fed":
      return feedIn(s, e);
    case "alive":
      return { ...s, [e.feed]: alive(s[e.feed] as Feed<unknown>, e.at) };
    case "failed":
      return { ...s, [e.feed]: failed(s[e.feed] as Feed<unknown>, e.problem, e.at) };
    case "search/ask":
      return { ...s, search: { ...(e.query === "" ? noSearch : s.search), query: e.query, busy: true, problem: null } };
    case "search/found": {
      if (e.query !== s.search.query) {
        return s;
      }
      const results = e.further ? [...s.search.results, ...e.page.entities] : e.page.entities;
      return { ...s, search: { ...s.search, results, next: e.page.next_page_token, busy: false, took: e.took, problem: null } };
    }
    case "search/failed":
      return e.query === s.search.query ? { ...s, search: { ...s.search, busy: false, problem: e.problem } } : s;
    case "subject":
      return { ...s, subject: fed(e.status, e.at) };
    case "subject/failed":
      return { ...s, subject: { ...failed<EntityStatus>(noFeed, e.problem, e.at), offered: true } };
    case "draft/open":
    case "draft/field":
    case "draft/busy":
    case "draft/tried":
    case "draft/done":
    case "draft/failed":
      return { ...s, draft: reduceDraft(s.draft, e) };
    default:
      return s.entity === null || s.entity.name !== e.name ? s : { ...s, entity: reduceEntity(s.entity, e) };
  }
}

function routed(s: State, route: Route): State {
  const entity = route.page === "entity" ? (s.entity?.name === route.name ? s.entity : entityView(route.name)) : null;
  return { ...s, route, entity, help: false };
}

function entityView(name: string): EntityView {
  return {
    name, status: noFeed, deleted: false, shares: noSeries, activity: noFeed, recent: noRecent, leases: noFeed, history: noFeed,
    above: [], tree: noTree, usage: {},
  };
}

function feedIn(s: State, e: Extract<Event, { type: "fed" }>): State {
  if (e.feed === "survey") {
    return surveyed(s, e.value, e.at);
  }
  const next = { ...s, [e.feed]: fed(e.value as unknown, e.at) };
  if (e.feed === "sites" && s.survey.value === null) {
    return { ...next, picture: pictured(s.picture, e.value.sites.map((x) => x.name), () => undefined) };
  }
  return next;
}

function surveyed(s: State, survey: Survey, at: number): State {
  const before = s.survey.value;
  const rates = allRates(before, survey, at - s.survey.at);
  const row: Record<string, number | null> = Object.fromEntries(survey.sites.map((x) => [x.site, rates[x.site]?.granted ?? null]));
  const refused = Object.values(rates).flatMap((r) => (r.refused === null ? [] : [r.refused]));
  row["refused"] = refused.length === 0 ? null : refused.reduce((a, b) => a + b, 0);
  const known = (a: string, b: string): number | undefined =>
    survey.sites.find((x) => x.site === a)?.peers.find((p) => p.site === b)?.round_trip_ms ?? undefined;
  const picture = pictured(s.picture, survey.sites.map((x) => x.site), known);
  const rateSeries = before === null ? s.rateSeries : addRow(s.rateSeries, at, row, mostRows);
  return { ...s, survey: fed(survey, at), rates, rateSeries, picture };
}

/** Where the sites stand, and what that was made of. */
export interface Picture {
  readonly names: string;
  /** How many latencies were known. */
  readonly pairs: number;
  readonly places: readonly Place[];
}

/** Keeps the picture still while the same sites are there and no latency becomes known. */
export function pictured(before: Picture, names: readonly string[], known: (a: string, b: string) => number | undefined): Picture {
  const sorted = [...names].sort();
  const pairs = sorted.flatMap((a) => sorted.map((b) => known(a, b))).filter((v) => v !== undefined).length;
  const same = before.names === sorted.join();
  return same && pairs <= before.pairs ? before : { names: sorted.join(), pairs, places: layout(sorted, known) };
}

type EntityEvent = Extract<Event, { type: `entity/${string}` }>;

function reduceEntity(v: EntityView, e: EntityEvent): EntityView {
  switch (e.type) {
    case "entity/status":
      return watched(v, e.status, e.deleted, e.watched, e.at);
    case "entity/failed":
      return { ...v, [e.what]: failed(v[e.what] as Feed<unknown>, e.problem, e.at) };
    case "entity/activity": {
      const recent = addActivity(v.recent, e.activity, e.at);
      return { ...v, activity: fed(null, e.at), recent, shares: prepend(v.shares, leftSeries(recent), mostRows) };
    }
    case "entity/leases":
      return { ...v, leases: fed(e.leases, e.at) };
    case "entity/history":
      return { ...v, history: fed(e.history, e.at) };
    case "entity/above":
      return { ...v, above: e.above };
    case "entity/children":
      return { ...v, tree: grow(v.tree, e.parent, e.page, e.further) };
    case "entity/turn":
      return { ...v, tree: turn(v.tree, e.child, e.open) };
    case "entity/usage":
      return { ...v, usage: { ...v.usage, ...Object.fromEntries(e.usage.map((u) => [u.name, u])) } };
  }
}

function watched(v: EntityView, status: EntityStatus, deleted: boolean, watch: boolean, at: number): EntityView {
  const tree = v.tree.root === null ? { ...v.tree, root: status, open: { [status.name]: true } } : { ...v.tree, root: status };
  const next = { ...v, status: fed(status, at), deleted, tree };
  if (!watch) {
    return next;
  }
  const row: Record<string, number | null> = Object.fromEntries(status.shares.map((s) => [s.site, s.left]));
  const time = Math.floor(at / rowEvery) * rowEvery;
  const last = v.shares.at.at(-1);
  let shares = v.shares;
  if (last !== undefined && time - last > 2 * rowEvery) {
    // Nothing was told, so nothing changed: the line stays level until now.
    const held = Object.fromEntries(Object.entries(shares.columns).map(([k, c]) => [k, c.at(-1) ?? null]));
    shares = addRow(shares, time - rowEvery, held, mostRows);
  }
  return { ...next, shares: addRow(shares, time, row, mostRows) };
}
