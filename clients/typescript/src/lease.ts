import { sleep } from "./clock.js";
import { ClosedError, LeaseNotFoundError, SamyaError } from "./errors.js";
import { Keeper } from "./keeper.js";
import { type Json } from "./outcome.js";
import { Question } from "./question.js";
import { count, duration, entityPath, leaseMembers, moved, movementOf, number, object, text } from "./requests.js";
import { type Runner } from "./runner.js";
import { linked } from "./signals.js";
import { type CallOptions, type MoveOptions, type Receipt } from "./types.js";
import { newId } from "./ulid.js";

/** What is known of a lease. */
export interface LeaseFacts {
  readonly name: string;
  readonly entity: string;
  readonly tokens: number;
  readonly holder: string;
  /** Until when the lease holds its tokens at least, in milliseconds since the Unix epoch. */
  readonly expires: number;
  /** The time to live when the lease was granted or renewed, in milliseconds. */
  readonly ttl: number;
}

/** Reads the lease in an answer to a request that was made at `asked`. */
export function leaseOf(runner: Runner, body: Json, ttl: number, asked: { mono: number; wall: number }): Lease {
  // The site counted the remaining time after `asked`, so that `expires` is on the safe side.
  const remaining = number(body, "remaining_ms");
  return new Lease(runner, {
    name: text(body, "name"), entity: text(body, "entity"), tokens: number(body, "tokens"), holder: text(body, "holder"),
    expires: asked.wall + remaining, ttl,
  }, asked.mono + remaining);
}

/**
 * Tokens held for a time, which go back by themselves unless the lease is renewed or
 * committed. The methods leave the Lease itself unchanged.
 */
export class Lease implements LeaseFacts {
  readonly name: string;
  readonly entity: string;
  readonly tokens: number;
  readonly holder: string;
  readonly expires: number;
  readonly ttl: number;

  constructor(
    private readonly runner: Runner,
    facts: LeaseFacts,
    /** When the lease ends, by the clock that never goes back. */
    private readonly ends: number,
  ) {
    this.name = facts.name;
    this.entity = facts.entity;
    this.tokens = facts.tokens;
    this.holder = facts.holder;
    this.expires = facts.expires;
    this.ttl = facts.ttl;
  }

  /** Gives the lease a time to live from now on, in milliseconds; undefined: as long as before. */
  async renew(ttl?: number, o: CallOptions = {}): Promise<Lease> {
    const body: Json = { lease: this.name };
    if (ttl !== undefined) {
      body["ttl"] = duration("ttl", ttl);
    }
    const asked = this.runner.o.clock.now();
    const decider = new Question({ entity: this.entity });
    const got = await this.runner.run({ method: "POST", path: "/v1/leases:renew", body, decider, expects: leaseMembers }, o);
    return leaseOf(this.runner, object(got), ttl ?? this.ttl, asked);
  }

  /** Keeps tokens for good, undefined for all, gives the rest back, and ends the lease. */
  async commit(tokens?: number, o: CallOptions = {}): Promise<{ kept: number; returned: number }> {
    const body: Json = { lease: this.name };
    if (tokens !== undefined) {
      body["tokens"] = count("tokens", tokens);
    }
    const decider = new Question({ entity: this.entity, id: newId(), moves: true });
    const got = object(await this.runner.run({ method: "POST", path: "/v1/leases:commit", body, decider, expects: ["lease", "returned"] }, o));
    return { kept: number(got, "tokens"), returned: number(got, "returned") };
  }

  /** Gives tokens of the lease back, undefined for all. */
  async release(tokens?: number, o: MoveOptions = {}): Promise<Receipt> {
    const body: Json = { lease: this.name };
    if (tokens !== undefined) {
      body["tokens"] = count("tokens", tokens);
    }
    const decider = movementOf(this.entity, newId(), 0, o);
    const ask = { method: "POST", path: entityPath(this.entity, "release"), body, decider, expects: moved } as const;
    return receiptOf(object(await this.runner.run(ask, o)));
  }

  /**
   * Renews the lease until it is told to stop. Work that needs the tokens belongs under the
   * signal of the result, which is aborted once the lease is lost.
   */
  keep(o: { signal?: AbortSignal } = {}): KeptLease {
    return new KeptLease(this.runner, this, this.ends, o.signal);
  }

  /** When the lease ends, by the clock that never goes back; for those who keep it. */
  endsAt(): number {
    return this.ends;
  }
}

/** A lease that is renewed in the background. */
export class KeptLease {
  private readonly end: ReturnType<typeof linked>;
  private readonly held = new AbortController();
  /** Resolves once renewals have stopped. */
  readonly stopped: Promise<void>;

  constructor(
    private readonly runner: Runner,
    private lease: Lease,
    ends: number,
    signal: AbortSignal | undefined,
  ) {
    this.end = linked(signal, runner.closed);
    this.stopped = this.renewals(new Keeper(ends)).then((why) => {
      this.end.unlink();
      this.held.abort(why);
    });
  }

  /** Aborted once the lease is not kept any more; its reason tells why. */
  get signal(): AbortSignal {
    return this.held.signal;
  }

  /** The lease as it was last renewed. */
  get current(): Lease {
    return this.lease;
  }

  /** Stops renewing. The lease then lasts as long as its last renewal says. */
  async stop(): Promise<void> {
    this.end.abort();
    await this.stopped;
  }

  /** Renews the lease until it is lost or told to stop, and returns the reason. */
  private async renewals(keeper: Keeper): Promise<SamyaError> {
    const { clock } = this.runner.o;
    let last: unknown;
    for (;;) {
      await sleep(clock, keeper.pause(clock.now().mono), this.end.signal);
      if (this.runner.closed.aborted) {
        return new ClosedError({ reason: "CLIENT_CLOSED", message: "the client is closed", entity: this.lease.entity });
      }
      if (this.end.signal.aborted) {
        return new SamyaError({ reason: "CANCELED", message: `lease ${this.lease.name} is no longer kept`, entity: this.lease.entity });
      }
      const timeout = keeper.left(clock.now().mono);
      if (timeout === 0) {
        return new LeaseNotFoundError({
          reason: "LEASE_NOT_FOUND", message: `lease ${this.lease.name} could not be renewed in time`,
          entity: this.lease.entity, cause: last,
        });
      }
      try {
        this.lease = await this.lease.renew(this.lease.ttl, { timeout, signal: this.end.signal });
        keeper.renewed(this.lease.endsAt());
      } catch (e) {
        if (e instanceof LeaseNotFoundError || e instanceof ClosedError) {
          return e;
        }
        last = e;
      }
    }
  }
}

export function receiptOf(body: Json): Receipt {
  return {
    tokens: number(body, "tokens"), left: number(body, "left"), site: text(body, "site"), requestId: text(body, "request_id"),
    parked: body["parked"] === true,
  };
}
