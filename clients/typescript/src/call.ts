import { type SamyaError } from "./errors.js";
import { type Decider } from "./movement.js";
import { type Outcome, type Over } from "./outcome.js";
import { type Targets, Tour } from "./targets.js";

/** A time: by a clock that never goes back, and since the Unix epoch. Milliseconds. */
export interface Now {
  mono: number;
  wall: number;
}

/**
 * What to do next.
 *
 * - try: ask a target; the try ends at `by`, by the clock that never goes back.
 * - pause: wait, then call resumed.
 * - end, fail: the call has its outcome.
 */
export type Step =
  | { kind: "try"; target: number; by: number }
  | { kind: "pause"; ms: number }
  | { kind: "end"; body: unknown }
  | { kind: "fail"; error: SamyaError };

export interface CallOptions {
  /** When the call ends, by the clock that never goes back. */
  deadline: number;
  /** How long a target may be silent beyond its wait before the next is asked. */
  tryTime: number;
  /** How long beyond the deadline a request of unknown outcome can be resumed. */
  repeatTime: number;
}

/**
 * A call from its beginning to its outcome: asked what to do next, it answers with a step,
 * and is told what became of the step. It sends nothing, reads no clock and draws no
 * numbers, so that the same outcomes at the same times lead to the same steps.
 */
export class Call {
  private readonly tour: Tour;
  /** The try under way. */
  private target = 0;
  private begun = 0;

  constructor(
    private readonly decider: Decider,
    private readonly targets: Targets,
    private readonly o: CallOptions,
  ) {
    this.tour = new Tour(targets);
  }

  /** The first step. */
  begin(now: Now): Step {
    this.decider.expire(now.wall + (this.o.deadline - now.mono) + this.o.repeatTime);
    return this.resumed(now);
  }

  /** The step after a pause. */
  resumed(now: Now): Step {
    this.tour.start(now.mono);
    return this.step(now);
  }

  /** The step after a try. `over` tells that the caller, or the client, has ended the call. */
  told(outcome: Outcome, now: Now, over?: Over): Step {
    const settled = this.decider.judge(outcome);
    if (over === undefined || outcome.kind === "done") {
      this.targets.learn(this.target, outcome, now.mono, now.mono - this.begun, this.decider.wait + this.o.tryTime);
    }
    if (outcome.kind === "done") {
      return { kind: "end", body: outcome.body };
    }
    if (settled) {
      return this.fail();
    }
    this.tour.advised(this.decider.refusal?.retryAfter ?? 0);
    if (over === undefined && now.mono >= this.o.deadline) {
      over = { kind: "deadline" };
    }
    if (over !== undefined || this.decider.spent(now.wall)) {
      return this.fail(over);
    }
    return this.step(now);
  }

  /** The last step of a call that ends while it pauses. */
  fail(over?: Over): Step {
    return { kind: "fail", error: this.decider.final(over) };
  }

  private step(now: Now): Step {
    const next = this.tour.next();
    if (next === undefined) {
      const ms = this.tour.pause();
      if (now.mono + ms >= this.o.deadline) {
        // The next round would begin too late: the caller had better hear now.
        return this.fail(now.mono >= this.o.deadline ? { kind: "deadline" } : undefined);
      }
      return { kind: "pause", ms };
    }
    this.target = next.target;
    this.begun = now.mono;
    this.targets.begin(next.target, now.mono);
    const own = now.mono + this.decider.wait + this.o.tryTime;
    return { kind: "try", target: next.target, by: next.more ? Math.min(own, this.o.deadline) : this.o.deadline };
  }
}
