// A change that an operator prepares: the fields, the dry run of exactly these fields, and
// the change itself.

import { type Changed, type Entity } from "./api.js";
import { type Problem } from "./problem.js";
import { type Action, entityPath } from "./routes.js";

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Draft {
  readonly action: Action;
  readonly fields: Readonly<Record<string, string>>;
  /** Names the change; a repeat of a change of unknown outcome keeps the name. */
  readonly requestId: string;
  readonly busy: "no" | "dry run" | "change";
  /** The dry run, and the request that it was for. */
  readonly tried: { readonly of: string; readonly answer: Changed } | null;
  readonly done: Changed | null;
  readonly problem: Problem | null;
}

export const draftOf = (action: Action, requestId: string, fields: Record<string, string> = {}): Draft => ({
  action,
  fields,
  requestId,
  busy: "no",
  tried: null,
  done: null,
  problem: null,
});

export type FieldProblem = { field: string; problem: string };

const most = 2 ** 53 - 1;

function limitOf(text: string): number | null {
  const plain = text.replaceAll(/[,_\s]/g, "");
  const n = /^\d+$/.test(plain) ? Number(plain) : NaN;
  return Number.isSafeInteger(n) && n <= most ? n : null;
}

/** The request of a draft, or the fields that it lacks. The server checks everything else. */
export function requestOf(d: Draft, subject: Entity | null): Request | FieldProblem[] {
  const field = (name: string): string => (d.fields[name] ?? "").trim();
  switch (d.action) {
    case "create": {
      const [name, limit] = [field("name"), limitOf(field("limit"))];
      const wrong: FieldProblem[] = [];
      if (name === "") {
        wrong.push({ field: "name", problem: "a name is needed, such as acme/vm" });
      }
      if (limit === null) {
        wrong.push({ field: "limit", problem: "a whole number of tokens is needed, at most 9,007,199,254,740,991" });
      }
      if (wrong.length > 0) {
        return wrong;
      }
      const body: Record<string, unknown> = { name, limit, request_id: d.requestId };
      for (const key of ["parent", "per", "kind"]) {
        if (field(key) !== "") {
          body[key] = field(key);
        }
      }
      return { method: "POST", path: "/v1/entities", body };
    }
    case "limit": {
      const limit = limitOf(field("limit"));
      if (subject === null) {
        return [{ field: "name", problem: "choose an entity that exists" }];
      }
      if (limit === null) {
        return [{ field: "limit", problem: "a whole number of tokens is needed, at most 9,007,199,254,740,991" }];
      }
      const version = Number(d.fields["version"] ?? subject.version);
      return { method: "PATCH", path: entityPath(subject.name), body: { limit, expected_version: version, request_id: d.requestId, wait_applied: true } };
    }
    case "drain": {
      if (field("site") === "") {
        return [{ field: "site", problem: "choose a site" }];
      }
      const body: Record<string, unknown> = { request_id: d.requestId };
      if (field("cancel") === "yes") {
        body["cancel"] = true;
      } else if (field("heir") !== "") {
        body["heir"] = field("heir");
      }
      return { method: "POST", path: `/v1/members/${encodeURIComponent(field("site"))}:drain`, body };
    }
  }
}

/** A request as text, to tell whether a dry run was for the same request. */
export const fingerprint = (r: Request): string => `${r.method} ${r.path} ${JSON.stringify(r.body)}`;

/** Whether the change may be made: exactly this request was tried before. */
export function mayApply(d: Draft, r: Request | FieldProblem[]): boolean {
  return d.busy === "no" && d.done === null && !Array.isArray(r) && d.tried?.of === fingerprint(r);
}

export type DraftEvent =
  | { type: "draft/open"; draft: Draft }
  | { type: "draft/field"; field: string; value: string; requestId: string }
  | { type: "draft/busy"; what: "dry run" | "change" }
  | { type: "draft/tried"; of: string; answer: Changed }
  | { type: "draft/done"; answer: Changed }
  | { type: "draft/failed"; problem: Problem };

export function reduceDraft(d: Draft | null, e: DraftEvent): Draft | null {
  if (e.type === "draft/open") {
    return e.draft;
  }
  if (d === null) {
    return null;
  }
  switch (e.type) {
    case "draft/field": {
      // Another request needs another name; only an unchanged repeat keeps its name.
      return { ...d, fields: { ...d.fields, [e.field]: e.value }, tried: null, done: null, problem: null, requestId: e.requestId };
    }
    case "draft/busy":
      return { ...d, busy: e.what, problem: null };
    case "draft/tried":
      return { ...d, busy: "no", tried: { of: e.of, answer: e.answer }, problem: null };
    case "draft/done":
      return { ...d, busy: "no", done: e.answer, problem: null };
    case "draft/failed":
      return { ...d, busy: "no", problem: e.problem };
  }
}
