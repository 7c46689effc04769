// Problem documents of the API (RFC 9457), and what stands in for one if there is no answer.

export interface Problem {
  title: string;
  detail: string;
  /** 0 without an answer. */
  status: number;
  reason: string;
  /** The fields that are refused, and why. */
  fields: { field: string; problem: string }[];
  requestId: string;
}

const text = (v: unknown): string => (typeof v === "string" ? v : "");

function fieldsOf(body: Record<string, unknown>): Problem["fields"] {
  const list = Array.isArray(body["errors"]) ? body["errors"] : [];
  const fields = list.flatMap((e: unknown) => {
    const o = (e ?? {}) as Record<string, unknown>;
    return text(o["field"]) === "" ? [] : [{ field: text(o["field"]), problem: text(o["problem"]) }];
  });
  if (fields.length === 0 && text(body["field"]) !== "") {
    return [{ field: text(body["field"]), problem: text(body["detail"]) }];
  }
  return fields;
}

/** Reads the body of an answer that is no success. */
export function problemOf(status: number, body: unknown): Problem {
  if (typeof body !== "object" || body === null) {
    return { title: `The answer has status ${status}`, detail: "", status, reason: "", fields: [], requestId: "" };
  }
  const o = body as Record<string, unknown>;
  return {
    title: text(o["title"]) || `The answer has status ${status}`,
    detail: text(o["detail"]),
    // A problem in a stream has its status in the document alone.
    status: status === 0 && typeof o["status"] === "number" ? o["status"] : status,
    reason: text(o["reason"]),
    fields: fieldsOf(o),
    requestId: text(o["request_id"]),
  };
}

/** The problem of a request that got no answer. */
export function unanswered(cause: unknown): Problem {
  const detail = cause instanceof Error ? cause.message : "";
  return { title: "The app manager does not answer", detail, status: 0, reason: "NO_ANSWER", fields: [], requestId: "" };
}

/** Whether the app manager does not have the call at all. */
export const notOffered = (p: Problem): boolean => p.reason === "ROUTE_NOT_FOUND" || (p.status === 404 && p.reason === "");

/** Whether a change may have happened in spite of the problem, so that a repeat keeps its request id. */
export const outcomeOpen = (p: Problem): boolean => p.status === 0 || p.reason === "OUTCOME_UNKNOWN";
