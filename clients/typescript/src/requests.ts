import { type ResumePoint, SamyaError, invalid } from "./errors.js";
import { Movement } from "./movement.js";
import { type Json, isObject } from "./outcome.js";
import { type AcquireOptions, type Entity, type EntityState, type MoveOptions } from "./types.js";

// The wait of an acquire that gives none, at sites with the default setting.
const siteWait = 5_000;

/** The members of answers. */
export const moved = ["tokens", "site"] as const;
export const leaseMembers = ["name", "remaining_ms"] as const;
export const entityMembers = ["name", "limit"] as const;

/**
 * The path of an entity. Slashes part its segments, and stay. Names that would be the path of
 * something else are refused here, all others by the API.
 */
export function entityPath(entity: string, verb = ""): string {
  if (entity.includes(":") || entity.split("/").some((s) => s === "." || s === "..")) {
    throw invalid("name", 'must have no ":", and no segment "." or ".."');
  }
  return "/v1/entities/" + entity.split("/").map(encodeURIComponent).join("/") + (verb === "" ? "" : ":" + verb);
}

/** The longest time that calls can be given; the API has bounds of its own below. */
const longest = 365 * 24 * 3_600_000;

/** The time of a call that its caller gives, in milliseconds; undefined if it gives none. */
export function timeoutOf(timeout: number | undefined): number | undefined {
  if (timeout !== undefined && !(timeout > 0 && timeout <= longest)) {
    throw invalid("timeout", "must be a number of milliseconds above 0, at most 365 days");
  }
  return timeout;
}

/** A duration as the API reads it. */
export function duration(field: string, ms: number): string {
  if (!(Math.abs(ms) <= longest)) {
    throw invalid(field, "must be a number of milliseconds, at most 365 days");
  }
  return `${Math.round(ms * 1000)}us`;
}

/** A count of tokens. JSON has no other numbers, and nothing may round a count. */
export function count(field: string, n: number): number {
  if (!Number.isSafeInteger(n)) {
    throw invalid(field, `must be a whole number of at most ${Number.MAX_SAFE_INTEGER}`);
  }
  return n;
}

/** The resume point of the option; undefined if the caller gives none. */
export function resumeOf(o: MoveOptions): ResumePoint | undefined {
  const from = o.resume instanceof SamyaError ? o.resume.resume : o.resume;
  if (o.resume !== undefined && (from === undefined || from.requestId === "" || !(from.attempt >= 1))) {
    throw invalid("resume", "an error that does not tell how to go on");
  }
  return from;
}

/**
 * How long an acquire may wait at a site, and what the body says of it. A caller with a time
 * of its own gets the refusal within the time: without, the outcome would not be known.
 */
export function waitOf(o: AcquireOptions): { wait: number; body: Json } {
  const wait = o.wait ?? siteWait;
  if (timeoutOf(o.timeout) === undefined || o.timeout === undefined) {
    return { wait, body: o.wait === undefined ? {} : { wait: duration("wait", wait) } };
  }
  const within = Math.max(0, o.timeout - Math.max(20, o.timeout / 10));
  const least = Math.min(wait, within);
  return { wait: least, body: o.wait === undefined && least === wait ? {} : { wait: duration("wait", least) } };
}

/** The movement of a call. */
export function movementOf(entity: string, id: string, wait: number, o: MoveOptions, dry = false): Movement {
  return new Movement({ id: o.requestId ?? id, entity, wait, dry, resume: resumeOf(o) });
}

export function text(body: Json, key: string): string {
  const v = body[key];
  return typeof v === "string" ? v : "";
}

export function number(body: Json, key: string): number {
  const v = body[key];
  return typeof v === "number" ? v : 0;
}

export function object(v: unknown): Json {
  return isObject(v) ? v : {};
}

export function entityOf(body: Json): Entity {
  const transit = body["in_transit"];
  return {
    name: text(body, "name"), limit: number(body, "limit"), generation: number(body, "generation"), version: number(body, "version"),
    parent: text(body, "parent"), children: number(body, "children"), available: number(body, "available"),
    acquired: number(body, "acquired"), inTransit: typeof transit === "number" ? transit : undefined,
    mayExceedBy: number(body, "may_exceed_by"), complete: body["complete"] === true, consistent: body["consistent"] === true,
  };
}

export function stateOf(body: Json): EntityState {
  return { ...entityOf(body), deleted: body["deleted"] === true, resumeToken: text(body, "resume_token") };
}
