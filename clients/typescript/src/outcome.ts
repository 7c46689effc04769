import { ClosedError, errorOf, type ErrorDetails, type SamyaError, type Violation } from "./errors.js";

/** A refusal in an answer: what the problem document (RFC 9457) says. */
export interface Refusal extends ErrorDetails {
  /** The attempt to go on with, and the sites tried; only with OUTCOME_UNKNOWN. */
  attempt: number;
  tried: readonly string[];
}

/**
 * What became of a try.
 *
 * - done: samya has answered with success.
 * - refused: samya has answered with a problem document.
 * - unsent: the request was provably not sent.
 * - lost: the request may have been done, and no answer has come.
 *
 * `silent`: the time of the try was over, and the target has done nothing.
 */
export type Outcome =
  | { kind: "done"; body: unknown }
  | { kind: "refused"; refusal: Refusal }
  | { kind: "unsent"; cause: unknown; silent?: boolean }
  | { kind: "lost"; cause: unknown; silent?: boolean };

/** The media type of a problem document. */
const problemType = "application/problem+json";

/**
 * Turns an answer of HTTP into an outcome. A success has the expected members; an answer that
 * is not samya's proves nothing.
 */
export function outcomeOf(status: number, contentType: string, text: string, expects: readonly string[] = []): Outcome {
  const ok = status >= 200 && status < 300;
  let body: unknown;
  try {
    body = text === "" && ok ? {} : JSON.parse(text);
  } catch {
    body = undefined;
  }
  if (!isObject(body) || (ok && expects.some((key) => !(key in (body as Json))))) {
    return { kind: "lost", cause: new Error(`an answer of status ${status} that is not samya's`) };
  }
  if (ok) {
    return { kind: "done", body };
  }
  const refusal = contentType.split(";")[0]?.trim() === problemType ? refusalOf(body) : undefined;
  if (refusal === undefined) {
    return { kind: "lost", cause: new Error(`an answer of status ${status} without a problem document`) };
  }
  return { kind: "refused", refusal };
}

/** Reads a problem document; undefined if it is none of samya's. */
export function refusalOf(body: unknown): Refusal | undefined {
  if (!isObject(body) || typeof body["reason"] !== "string") {
    return undefined;
  }
  const text = (key: string): string | undefined => (typeof body[key] === "string" ? body[key] : undefined);
  const number = (key: string): number | undefined => (typeof body[key] === "number" ? body[key] : undefined);
  const violations: Violation[] = [];
  for (const v of Array.isArray(body["errors"]) ? body["errors"] : []) {
    if (isObject(v)) {
      violations.push({ field: String(v["field"]), problem: String(v["problem"]) });
    }
  }
  return {
    reason: body["reason"],
    message: text("detail") ?? text("title"),
    entity: text("entity"),
    requestId: text("request_id"),
    site: text("site"),
    lacking: text("lacking"),
    left: number("tokens_left"),
    limit: number("limit"),
    retryAfter: number("retry_after_ms"),
    violations,
    attempt: number("attempt") ?? 0,
    tried: Array.isArray(body["tried"]) ? body["tried"].map(String) : [],
  };
}

/** A JSON object of unknown members. */
export type Json = Record<string, unknown>;

export function isObject(v: unknown): v is Json {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}

/** Why a call is over, other than by an answer. */
export type Over = { kind: "deadline" } | { kind: "canceled"; cause: unknown } | { kind: "closed" };

/** The details of a call that was over before anything was done. */
export function ended(over: Over): ErrorDetails {
  switch (over.kind) {
    case "deadline":
      return { reason: "DEADLINE_EXCEEDED", message: "the deadline passed before anything was done" };
    case "canceled":
      return { reason: "CANCELED", message: "canceled before anything was done", cause: over.cause };
    case "closed":
      return { reason: closedReason, message: "the client is closed; nothing was done" };
  }
}

/** The details of a call that could not be sent to anybody. */
export function unreachable(cause: unknown): ErrorDetails {
  return { reason: "SITE_UNAVAILABLE", message: "no target could be reached; nothing was done", cause };
}

/** The reason of calls at a closed client. It is never sent. */
export const closedReason = "CLIENT_CLOSED";

/** The cause to show for the end of a call, beside the last answer. */
export function causeOf(over: Over, last: unknown): unknown {
  if (over.kind === "canceled") {
    return over.cause;
  }
  return last ?? new Error(over.kind === "deadline" ? "the deadline has passed" : "the client was closed");
}

/** Makes the error of details, of this machine or of an answer. */
export function failed(d: ErrorDetails): SamyaError {
  return d.reason === closedReason ? new ClosedError(d) : errorOf(d);
}
