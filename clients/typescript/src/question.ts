import { type ErrorDetails, type SamyaError } from "./errors.js";
import { type Decider, again } from "./movement.js";
import { type Outcome, type Over, type Refusal, causeOf, ended, failed, unreachable } from "./outcome.js";

/** Reasons which hold for all tries of a change that names its id. */
const settlingChange: ReadonlySet<string> = new Set([
  "ENTITY_EXISTS", "VERSION_MISMATCH", "HAS_CHILDREN", "PARENT_NOT_FOUND", "REQUEST_ID_REUSED", "LEASE_NOT_FOUND", "MEMBER_STATE",
]);

export interface QuestionOptions {
  entity: string;
  /** The id of a change; empty for a read. */
  id?: string;
  /** How long a target may wait before it answers, in milliseconds. */
  wait?: number;
  /** The call changes something, so that a lost answer matters. */
  moves?: boolean;
}

/** A call that may be repeated as it is without harm: a read, or a change with an id. */
export class Question implements Decider {
  readonly wait: number;
  private readonly entity: string;
  private readonly id: string;
  private readonly moves: boolean;
  /** An earlier try may have been done. */
  private lost = false;
  private last: ErrorDetails | undefined;
  refusal: Refusal | undefined;

  constructor(o: QuestionOptions) {
    this.entity = o.entity;
    this.id = o.id ?? "";
    this.wait = o.wait ?? 0;
    this.moves = o.moves ?? false;
  }

  expire(): void {
    // A question has no last time of execution.
  }

  spent(): boolean {
    return false;
  }

  next(): Record<string, unknown> {
    return this.id === "" ? {} : { request_id: this.id };
  }

  judge(outcome: Outcome): boolean {
    this.refusal = undefined;
    switch (outcome.kind) {
      case "done":
        this.last = undefined;
        return true;
      case "lost":
      case "unsent":
        this.lost ||= outcome.kind === "lost";
        this.last = unreachable(outcome.cause);
        return false;
      case "refused":
        break;
    }
    const r = outcome.refusal;
    this.refusal = this.last = r;
    if (again.has(r.reason)) {
      return false;
    }
    switch (r.reason) {
      case "OUTCOME_UNKNOWN":
      case "CANCELED":
        this.lost = true;
        return false;
      case "INTERNAL":
        // A change may have been made before the error.
        this.lost = true;
        return !this.moves;
    }
    return true;
  }

  final(over?: Over): SamyaError {
    let e = this.last;
    if (this.moves && this.lost && (over !== undefined || e === undefined || !settlingChange.has(e.reason))) {
      const last = e === undefined ? undefined : failed(e);
      e = {
        reason: "OUTCOME_UNKNOWN",
        message: "it may or may not have been done; a repeat with the same request id does no harm",
        cause: over === undefined ? last : causeOf(over, last),
      };
    } else if (over !== undefined && (over.kind !== "deadline" || e === undefined)) {
      e = ended(over);
    }
    const d = e ?? { reason: "INTERNAL" };
    return failed({ ...d, requestId: d.requestId || this.id, entity: d.entity || this.entity });
  }
}
