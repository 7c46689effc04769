/** How often a kept lease is renewed within its time to live. */
const keptTimes = 3;

/** The shortest time between two renewals, in milliseconds. */
const leastPause = 10;

/**
 * Decides when a lease is renewed, and when it is lost. A failed renewal is tried again
 * within the remaining time, until that is over. Times are handed in, in milliseconds.
 */
export class Keeper {
  constructor(private expires: number) {}

  /** How long to wait before the next renewal. */
  pause(now: number): number {
    return Math.max((this.expires - now) / keptTimes, leastPause);
  }

  /** How long the next renewal may take; 0: the lease has not been renewed in time. */
  left(now: number): number {
    return Math.max(0, this.expires - now);
  }

  renewed(expires: number): void {
    this.expires = expires;
  }
}
