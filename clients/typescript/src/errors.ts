/** The reasons of the API; the list only grows, so that other strings are possible. */
export type Reason = string;

/** A field at fault, and the rule or bound that its value breaks. */
export interface Violation {
  readonly field: string;
  readonly problem: string;
}

/**
 * All that a later call needs to find out an unknown outcome. It is plain JSON: it may be
 * kept anywhere, and another process may go on from it.
 */
export interface ResumePoint {
  readonly requestId: string;
  /** The number of the next attempt, above 1. */
  readonly attempt: number;
  /** The time until which the request can be resumed, in milliseconds since the Unix epoch. */
  readonly notAfter: number;
  /** The sites that may have done the request; none: any site. */
  readonly tried: readonly string[];
}

/** What an error tells beside its message. */
export interface ErrorDetails {
  reason: Reason;
  message?: string | undefined;
  entity?: string | undefined;
  requestId?: string | undefined;
  site?: string | undefined;
  lacking?: string | undefined;
  left?: number | undefined;
  limit?: number | undefined;
  retryAfter?: number | undefined;
  violations?: readonly Violation[] | undefined;
  resume?: ResumePoint | undefined;
  cause?: unknown;
}

/** Why a call failed. The classes below stand for the reasons that callers act on. */
export class SamyaError extends Error {
  /** The reason's name in the API, such as "OUT_OF_TOKENS". */
  readonly reason: Reason;
  /** The entity and the request id of the call; empty if it has none. */
  readonly entity: string;
  readonly requestId: string;
  /** The site that answered; empty if not known. */
  readonly site: string;
  /** The entity that lacked tokens or has too low a limit, unless it is `entity`. */
  readonly lacking: string;
  /** How many tokens the site can still grant; only with OutOfTokensError. */
  readonly left: number | undefined;
  /** The exceeded limit; only with ExceedsLimitError. */
  readonly limit: number | undefined;
  /** How long to wait before asking again, in milliseconds; 0: no advice. */
  readonly retryAfter: number;
  /** The fields at fault, each with the bound that it breaks. */
  readonly violations: readonly Violation[];
  /** How to go on; only with OutcomeUnknownError of an acquire or a release. */
  readonly resume: ResumePoint | undefined;

  constructor(d: ErrorDetails) {
    super(d.message || d.reason, d.cause === undefined ? undefined : { cause: d.cause });
    this.name = new.target.name;
    this.reason = d.reason;
    this.entity = d.entity ?? "";
    this.requestId = d.requestId ?? "";
    this.site = d.site ?? "";
    this.lacking = d.lacking ?? "";
    this.left = d.left;
    this.limit = d.limit;
    this.retryAfter = d.retryAfter ?? 0;
    this.violations = d.violations ?? [];
    this.resume = d.resume;
  }
}

/** The tokens could not be found within the wait: see `left` and `retryAfter`. */
export class OutOfTokensError extends SamyaError {}
/** More tokens than the limit can never be had: see `limit`. */
export class ExceedsLimitError extends SamyaError {}
/** The operation may or may not have been done: see `resume`. */
export class OutcomeUnknownError extends SamyaError {}
/** There is no entity of that name. */
export class EntityNotFoundError extends SamyaError {}
/** There is an entity of that name already. */
export class EntityExistsError extends SamyaError {}
/** There is no entity of the parent's name. */
export class ParentNotFoundError extends SamyaError {}
/** Other entities stand below the entity to delete. */
export class HasChildrenError extends SamyaError {}
/** The entity does not have the expected version. */
export class VersionMismatchError extends SamyaError {}
/** There is no such lease, or it has ended. */
export class LeaseNotFoundError extends SamyaError {}
/** An argument has a forbidden value: `violations` name each field and its bound. */
export class InvalidError extends SamyaError {}
/** The request id was used before with other arguments. */
export class RequestIdReusedError extends SamyaError {}
/** The request was resumed too late, or the clock of this machine is behind. */
export class RequestExpiredError extends SamyaError {}
/** Somebody else has made a later attempt of the same request. */
export class SupersededError extends SamyaError {}
/** The caller shows no credentials, or none that are good. Nothing was done. */
export class UnauthenticatedError extends SamyaError {}
/** The caller may not do this. Nothing was done. */
export class PermissionDeniedError extends SamyaError {}
/** All targets have more work than they can do in time. Nothing was done. */
export class OverloadedError extends SamyaError {}
/** No target, or none of its sites, could be reached. Nothing was done. */
export class UnavailableError extends SamyaError {}
/** The time of the call was over before anything was done. */
export class DeadlineExceededError extends SamyaError {}
/** The caller gave up before anything was done. */
export class CanceledError extends SamyaError {}
/** The client is closed. */
export class ClosedError extends SamyaError {}

type Class = new (d: ErrorDetails) => SamyaError;

const classes: ReadonlyMap<Reason, Class> = new Map<Reason, Class>([
  ["OUT_OF_TOKENS", OutOfTokensError],
  ["EXCEEDS_LIMIT", ExceedsLimitError],
  ["OUTCOME_UNKNOWN", OutcomeUnknownError],
  ["ENTITY_NOT_FOUND", EntityNotFoundError],
  ["ENTITY_EXISTS", EntityExistsError],
  ["PARENT_NOT_FOUND", ParentNotFoundError],
  ["HAS_CHILDREN", HasChildrenError],
  ["VERSION_MISMATCH", VersionMismatchError],
  ["LEASE_NOT_FOUND", LeaseNotFoundError],
  ["INVALID_FIELD", InvalidError],
  ["OUT_OF_RANGE", InvalidError],
  ["BODY_TOO_LARGE", InvalidError],
  ["REQUEST_ID_REUSED", RequestIdReusedError],
  ["REQUEST_EXPIRED", RequestExpiredError],
  ["SUPERSEDED", SupersededError],
  ["UNAUTHENTICATED", UnauthenticatedError],
  ["PERMISSION_DENIED", PermissionDeniedError],
  ["OVERLOADED", OverloadedError],
  ["RATE_LIMITED", OverloadedError],
  ["QUEUE_FULL", OverloadedError],
  ["SITE_UNAVAILABLE", UnavailableError],
  ["SITE_DRAINING", UnavailableError],
  ["LEASE_MOVED", UnavailableError],
  ["NO_QUORUM", UnavailableError],
  ["SHUTTING_DOWN", UnavailableError],
  ["DEADLINE_EXCEEDED", DeadlineExceededError],
  ["CANCELED", CanceledError],
]);

/** Makes the error of the class of its reason. */
export function errorOf(d: ErrorDetails): SamyaError {
  return new (classes.get(d.reason) ?? SamyaError)(d);
}

/** An INVALID_FIELD error about a single argument, found before anything is sent. */
export function invalid(field: string, problem: string): InvalidError {
  return new InvalidError({ reason: "INVALID_FIELD", message: `${field}: ${problem}`, violations: [{ field, problem }] });
}
