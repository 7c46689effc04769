import { type ErrorDetails, type ResumePoint, type SamyaError } from "./errors.js";
import { type Outcome, type Over, type Refusal, causeOf, ended, failed, unreachable } from "./outcome.js";

/** The highest number of an attempt. */
export const maxAttempt = (1 << 20) - 1;

/**
 * How the outcomes of tries decide a request. Both implementations are pure: they know
 * neither targets nor a clock.
 */
export interface Decider {
  /** How long a target may wait before it answers, in milliseconds. */
  readonly wait: number;
  /** The refusal of the last try; undefined after another outcome. */
  readonly refusal: Refusal | undefined;
  /** The members to add to the body of the next try. */
  next(): Record<string, unknown>;
  /** Records the outcome of a failed try, and reports whether the request is settled. */
  judge(outcome: Outcome): boolean;
  /** Whether no further try can be made at a time, in milliseconds since the Unix epoch. */
  spent(wall: number): boolean;
  /** Sets the time after which no site may execute the request, unless it is set. */
  expire(wall: number): void;
  /** The error of a request that failed as its last try did, or that is over. */
  final(over?: Over): SamyaError;
}

/** Reasons which tell that nothing of an attempt was done, so that it can be made again. */
export const again: ReadonlySet<string> = new Set([
  "OVERLOADED", "RATE_LIMITED", "QUEUE_FULL", "SHUTTING_DOWN", "SITE_UNAVAILABLE", "DEADLINE_EXCEEDED", "SITE_DRAINING",
  "LEASE_MOVED",
]);

/** Reasons which hold for all attempts of an acquire or a release. */
const settling: ReadonlySet<string> = new Set(["OUT_OF_TOKENS", "EXCEEDS_LIMIT", "SUPERSEDED", "LEASE_NOT_FOUND"]);

/** Reasons which refuse a resumed attempt itself. */
const ofTheAttempt: ReadonlySet<string> = new Set(["INVALID_FIELD", "REQUEST_ID_REUSED", "REQUEST_EXPIRED"]);

export interface MovementOptions {
  id: string;
  entity: string;
  /** How long an acquire may wait at a site, in milliseconds; 0 for a release. */
  wait: number;
  /** A dry run moves nothing: its outcome does not matter. */
  dry?: boolean;
  resume?: ResumePoint | undefined;
}

/**
 * An acquire, of a single entity or of several, or a release, on its way to an answer. After
 * a try that may have been done, the next try is a further attempt of the same request: it
 * counts up, and names the sites that may have done earlier attempts. With these the sites
 * undo whatever was done twice, and only the answer of the latest attempt counts.
 */
export class Movement implements Decider {
  readonly wait: number;
  readonly id: string;
  private readonly entity: string;
  private readonly dry: boolean;
  /** In milliseconds since the Unix epoch; 0 until it is set. */
  private notAfter = 0;
  /** The number of the next attempt, from 1. */
  private attempt = 1;
  private readonly tried: string[] = [];
  /** Sites that are not known may have done earlier attempts too. */
  private anywhere = false;
  /** A try of this call may have been done, and its attempt is not settled. */
  private indeterminate = false;
  private last: ErrorDetails | undefined;
  refusal: Refusal | undefined;

  constructor(o: MovementOptions) {
    this.id = o.resume?.requestId ?? o.id;
    this.entity = o.entity;
    this.wait = o.wait;
    this.dry = o.dry ?? false;
    if (o.resume !== undefined) {
      this.attempt = o.resume.attempt;
      this.notAfter = o.resume.notAfter;
      this.tried.push(...o.resume.tried);
      this.anywhere = o.resume.tried.length === 0;
    }
  }

  expire(wall: number): void {
    if (this.notAfter === 0) {
      this.notAfter = Math.floor(wall);
    }
  }

  next(): Record<string, unknown> {
    const more: Record<string, unknown> = { request_id: this.id };
    if (!this.dry) {
      more["not_after"] = new Date(this.notAfter).toISOString();
    }
    if (this.attempt > 1) {
      more["attempt"] = this.attempt;
      if (!this.anywhere && this.tried.length > 0) {
        more["tried"] = [...this.tried];
      }
    }
    return more;
  }

  judge(outcome: Outcome): boolean {
    this.refusal = undefined;
    switch (outcome.kind) {
      case "done":
        this.last = undefined;
        return true;
      case "refused":
        return this.refused(outcome.refusal);
      case "lost":
        this.mayHaveRun([]);
        this.last = { reason: "OUTCOME_UNKNOWN", cause: outcome.cause };
        return false;
      case "unsent":
        this.last = unreachable(outcome.cause);
        return false;
    }
  }

  private refused(r: Refusal): boolean {
    this.refusal = r;
    this.last = r;
    if (again.has(r.reason)) {
      return false;
    }
    switch (r.reason) {
      case "OUTCOME_UNKNOWN":
      case "CANCELED":
      case "INTERNAL": {
        const next = Math.max(this.attempt + 1, r.attempt);
        this.mayHaveRun(r.attempt > 0 ? r.tried : r.site ? [r.site] : []);
        if (!this.dry) {
          this.attempt = next;
        }
        return false;
      }
    }
    return true;
  }

  /** Notes that the last try may have been done at the sites; none stands for any site. */
  private mayHaveRun(sites: readonly string[]): void {
    if (this.dry) {
      return;
    }
    this.attempt++;
    this.indeterminate = true;
    if (sites.length === 0) {
      this.anywhere = true;
    }
    for (const s of sites) {
      if (!this.tried.includes(s)) {
        this.tried.push(s);
      }
    }
  }

  spent(wall: number): boolean {
    return this.attempt > maxAttempt || wall > this.notAfter;
  }

  final(over?: Over): SamyaError {
    let e = this.last;
    if (this.dry && over !== undefined) {
      e = ended(over);
    } else if (!this.settles(e)) {
      const last = e === undefined ? undefined : failed(e);
      e = this.unknown(over === undefined ? last : causeOf(over, last));
    } else if (over !== undefined && (over.kind !== "deadline" || e === undefined || e.reason === "DEADLINE_EXCEEDED")) {
      // Why the call is over tells more than a try that did nothing.
      e = ended(over);
    }
    const d = e ?? { reason: "INTERNAL" };
    return failed({ ...d, requestId: d.requestId || this.id, entity: d.entity || this.entity });
  }

  /** Whether ending with e leaves nothing open. */
  private settles(e: ErrorDetails | undefined): boolean {
    if (!this.indeterminate && this.attempt === 1) {
      return true;
    }
    if (e === undefined) {
      return false;
    }
    return ofTheAttempt.has(e.reason) ? !this.indeterminate : settling.has(e.reason);
  }

  /** The error that tells how to go on. */
  private unknown(cause: unknown): ErrorDetails {
    return {
      reason: "OUTCOME_UNKNOWN",
      message: `the request may or may not have been done; resume "${this.id}" as attempt ${this.attempt} to find out`,
      entity: this.entity,
      site: this.last?.site,
      cause,
      resume: {
        requestId: this.id,
        attempt: this.attempt,
        notAfter: this.notAfter,
        tried: this.anywhere ? [] : [...this.tried],
      },
    };
  }
}
