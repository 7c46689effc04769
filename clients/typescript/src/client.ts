import { type Clock, systemClock } from "./clock.js";
import { type ClientOptions, complete } from "./options.js";
import { Lease, leaseOf, receiptOf } from "./lease.js";
import { type Json } from "./outcome.js";
import { Question } from "./question.js";
import { count, duration, entityMembers, entityOf, entityPath, moved, movementOf, number, object, text, waitOf } from "./requests.js";
import { Runner } from "./runner.js";
import {
  type AcquireAllOptions, type AcquireOptions, type AllGrant, type CreateOptions, type DeleteOptions, type Entity,
  type EntityState, type Grant, type LeaseOptions, type LimitChange, type LimitOptions, type MoveOptions, type Part,
  type ReadOptions, type Receipt, type RequestOptions, type WatchOptions,
} from "./types.js";
import { newId } from "./ulid.js";
import { watch } from "./watch.js";

/** A little more than the longest time a target waits for all sites, in milliseconds. */
const appliedWait = 11_000;

/**
 * Acquires and releases tokens at the app managers of a cluster. An operation that may or may
 * not have been done is repeated in a way that can do it only once. Make a single client per
 * program; any number of calls may be under way at once. Every call rejects with a SamyaError.
 */
export class Client {
  private readonly runner: Runner;
  private readonly clock: Clock;

  /** Makes a client, which connects at its first call. Throws a TypeError for bad options. */
  constructor(options: ClientOptions) {
    this.runner = new Runner(complete(options));
    this.clock = options.clock ?? systemClock;
  }

  /** Ends the calls under way with a ClosedError, and closes all connections. */
  close(): void {
    this.runner.close();
  }

  /** Takes tokens of an entity, at least 1. Resolves once the grant is durable. */
  async acquire(entity: string, tokens: number, o: AcquireOptions = {}): Promise<Grant> {
    return grantOf(await this.take(entity, tokens, o));
  }

  /** Takes tokens as a lease with a time to live in milliseconds, 1 s to 7 days. */
  async acquireLease(entity: string, tokens: number, ttl: number, o: LeaseOptions = {}): Promise<Lease> {
    const asked = this.clock.now();
    const lease: Json = { ttl: duration("lease.ttl", ttl) };
    if (o.holder !== undefined) {
      lease["holder"] = o.holder;
    }
    const body = await this.take(entity, tokens, o, { lease });
    return leaseOf(this.runner, object(body["lease"]), ttl, asked);
  }

  /** A lease that was granted earlier, with only its name and entity. Asks no site. */
  leaseNamed(name: string, entity: string): Lease {
    const { mono, wall } = this.clock.now();
    return new Lease(this.runner, { name, entity, tokens: 0, holder: "", expires: wall, ttl: 0 }, mono);
  }

  private async take(entity: string, tokens: number, o: AcquireOptions, more: Json = {}): Promise<Json> {
    const { wait, body } = waitOf(o);
    Object.assign(body, more, { tokens: count("tokens", tokens) });
    if (o.minTokens !== undefined) {
      body["min_tokens"] = count("min_tokens", o.minTokens);
    }
    if (o.dryRun) {
      body["dry_run"] = true;
    }
    const decider = movementOf(entity, newId(this.clock.now().wall), wait, o, o.dryRun);
    const expects = "lease" in more ? [...moved, "lease"] : moved;
    return object(await this.runner.run({ method: "POST", path: entityPath(entity, "acquire"), body, decider, expects }, o));
  }

  /** Gives tokens back, at least 1. Resolves once the release is durable. */
  async release(entity: string, tokens: number, o: MoveOptions = {}): Promise<Receipt> {
    const decider = movementOf(entity, newId(this.clock.now().wall), 0, o);
    const body = { tokens: count("tokens", tokens) };
    return receiptOf(object(await this.runner.run({ method: "POST", path: entityPath(entity, "release"), body, decider, expects: moved }, o)));
  }

  /** Takes tokens of up to 1,000 entities, all or none; an error names the `lacking` entity. */
  async acquireAll(parts: readonly Part[], o: AcquireAllOptions = {}): Promise<AllGrant> {
    const { wait, body } = waitOf(o);
    body["atomic"] = true;
    body["operations"] = parts.map((p, i) => ({ acquire: { entity: p.entity, tokens: count(`operations[${i}].acquire.tokens`, p.tokens) } }));
    const decider = movementOf("", newId(this.clock.now().wall), wait, o);
    const got = object(await this.runner.run({ method: "POST", path: "/v1/batch", body, decider, expects: ["results", "site"] }, o));
    return { site: text(got, "site"), requestId: text(got, "request_id") };
  }

  /** Reads an entity, and the books of the sites about it. */
  async entity(entity: string, o: ReadOptions = {}): Promise<Entity> {
    const body: Json = {};
    if (o.consistency !== undefined) {
      body["consistency"] = o.consistency;
    }
    if (o.maxAge !== undefined) {
      body["max_age"] = duration("max_age", o.maxAge);
    }
    const ask = { method: "GET", path: entityPath(entity), body, decider: new Question({ entity }), expects: entityMembers } as const;
    return entityOf(object(await this.runner.run(ask, o)));
  }

  /**
   * Tells the present state of an entity and each later state, at most ten a second, until the
   * entity is deleted. A broken stream is resumed at another target. Leave the loop, or abort
   * the signal, to end it.
   */
  watch(entity: string, o: WatchOptions = {}): AsyncGenerator<EntityState, void, void> {
    return watch(this.runner, entity, o);
  }

  /** Creates an entity with a limit, 0 to 2^53-1, by decision of a majority of the sites. */
  async createEntity(entity: string, limit: number, o: CreateOptions = {}): Promise<void> {
    const body: Json = { name: entity, limit: count("limit", limit) };
    if (o.parent !== undefined) {
      body["parent"] = o.parent;
    }
    await this.change("POST", "/v1/entities", entity, body, o);
  }

  /** Changes the limit of an entity, as a majority of the sites decides. */
  async setLimit(entity: string, limit: number, o: LimitOptions = {}): Promise<LimitChange> {
    const body: Json = { limit: count("limit", limit) };
    if (o.expectedVersion !== undefined) {
      body["expected_version"] = count("expected_version", o.expectedVersion);
    }
    if (o.waitApplied) {
      body["wait_applied"] = true;
    }
    const got = await this.change("PATCH", entityPath(entity), entity, body, o, o.waitApplied ? appliedWait : 0);
    const missing = got["missing_sites"];
    return {
      limit: number(got, "limit"), version: number(got, "version"), mayExceedBy: number(got, "may_exceed_by"),
      missingSites: Array.isArray(missing) ? missing.map(String) : [],
    };
  }

  /** Moves an entity below another, with all below it; an empty parent means none. */
  async moveEntity(entity: string, parent: string, o: RequestOptions = {}): Promise<void> {
    await this.change("POST", entityPath(entity, "move"), entity, { parent }, o);
  }

  /** Deletes an entity, and forgets its tokens that are out. */
  async deleteEntity(entity: string, o: DeleteOptions = {}): Promise<void> {
    await this.change("DELETE", entityPath(entity), entity, o.subtree ? { subtree: true } : {}, o);
  }

  private async change(
    method: "POST" | "PATCH" | "DELETE", path: string, entity: string, body: Json, o: RequestOptions, wait = 0,
  ): Promise<Json> {
    const decider = new Question({ entity, id: o.requestId ?? newId(this.clock.now().wall), moves: true, wait });
    const expects = method === "DELETE" ? [] : entityMembers;
    return object(await this.runner.run({ method, path, body, decider, expects }, o));
  }
}

function grantOf(body: Json): Grant {
  return { tokens: number(body, "tokens"), left: number(body, "left"), site: text(body, "site"), requestId: text(body, "request_id") };
}
