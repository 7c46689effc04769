import { type Outcome } from "./outcome.js";

// A target that refused a call as overloaded is passed over for as long as it asks for,
// within these bounds; for `overloadUnsaid` if it does not say. All are milliseconds.
const leastOverload = 50;
const mostOverload = 5_000;
const overloadUnsaid = 1_000;

// A target that broke a connection, or could not be reached, is passed over for
// `firstDown`, then twice as long each time up to `mostDown`.
const firstDown = 100;
const mostDown = 5_000;

// A pause is made when all targets were asked in vain; each is twice as long as the pause
// before, up to `longestPause`.
const firstPause = 25;
const longestPause = 2_000;

interface Health {
  /** Failures in a row. */
  fails: number;
  /** Until when the target is passed over, and until when as an overloaded target. */
  downUntil: number;
  overloadedUntil: number;
}

const enum Rank {
  good,
  overloaded,
  down,
}

/** What a client knows of its targets, by the outcomes of tries. Times are handed in. */
export class Targets {
  private readonly health: Health[];

  constructor(
    readonly count: number,
    readonly random: () => number,
  ) {
    this.health = Array.from({ length: count }, () => ({ fails: 0, downUntil: -Infinity, overloadedUntil: -Infinity }));
  }

  private at(i: number): Health {
    return this.health[i] as Health;
  }

  private rank(i: number, now: number): Rank {
    const h = this.at(i);
    if (now < h.downUntil) {
      return Rank.down;
    }
    return now < h.overloadedUntil ? Rank.overloaded : Rank.good;
  }

  /** The targets, best first; equal targets stay as configured. */
  order(now: number): { target: number; down: boolean }[] {
    return Array.from({ length: this.count }, (_, i) => ({ target: i, rank: this.rank(i, now) }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ target, rank }) => ({ target, down: rank === Rank.down }));
  }

  /** Notes that a try begins: of many calls a single call tries a target that was down. */
  begin(i: number, now: number): void {
    const h = this.at(i);
    if (h.fails > 0 && now >= h.downUntil) {
      h.downUntil = now + this.downFor(h.fails);
    }
  }

  /** Records the outcome of a try that took a time, with `patience` for the answer. */
  learn(i: number, outcome: Outcome, now: number, took: number, patience: number): void {
    const h = this.at(i);
    switch (outcome.kind) {
      case "done":
        h.fails = 0;
        h.downUntil = -Infinity;
        return;
      case "refused":
        h.fails = 0;
        h.downUntil = -Infinity;
        if (outcome.refusal.reason === "SHUTTING_DOWN") {
          this.failed(h, now);
        } else if (outcome.refusal.reason === "OVERLOADED") {
          const asked = outcome.refusal.retryAfter || overloadUnsaid;
          h.overloadedUntil = now + Math.min(Math.max(asked, leastOverload), mostOverload);
        }
        return;
      case "unsent":
        // The request has waited for a connection of this client: others are busy.
        if (outcome.silent) {
          return;
        }
        break;
      case "lost":
        // A short time of the caller says nothing of the target.
        if (outcome.silent && took < patience) {
          return;
        }
    }
    this.failed(h, now);
  }

  private failed(h: Health, now: number): void {
    h.fails++;
    h.downUntil = now + this.downFor(h.fails);
  }

  private downFor(fails: number): number {
    return Math.min(firstDown * 2 ** Math.min(fails - 1, 10), mostDown) * (0.5 + this.random() / 2);
  }
}

/** Goes through the targets, best first, again and again. */
export class Tour {
  private order: { target: number; down: boolean }[] = [];
  private following = 0;
  private round = 0;
  /** The longest advice in this round of when to try again, in milliseconds. */
  private retryAfter = 0;

  constructor(private readonly targets: Targets) {}

  /** Begins a round. */
  start(now: number): void {
    this.order = this.targets.order(now);
    this.following = 0;
    this.retryAfter = 0;
  }

  /**
   * The next target of the round, and whether a target that is not down follows; undefined at
   * the end of the round. Targets that are down are asked only if there is no other.
   */
  next(): { target: number; more: boolean } | undefined {
    const at = this.order[this.following];
    if (at === undefined || (this.following > 0 && at.down && !this.order[0]?.down)) {
      return undefined;
    }
    this.following++;
    const then = this.order[this.following];
    return { target: at.target, more: then !== undefined && !then.down };
  }

  advised(retryAfter: number): void {
    this.retryAfter = Math.max(this.retryAfter, retryAfter);
  }

  /** How long to pause before the next round, in milliseconds. */
  pause(): number {
    const d = Math.min(firstPause * 2 ** Math.min(this.round, 10), longestPause);
    this.round++;
    return Math.max(d * (0.5 + this.targets.random() / 2), this.retryAfter);
  }
}
