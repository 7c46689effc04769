// Drives the client by lines of JSON, as the drivers of the other clients do: it makes the
// calls that the conformance suite asks for, and judges nothing.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import * as samya from "../src/index.js";

interface Args {
  client?: string; targets?: string[]; token?: string; ca?: string;
  entity: string; tokens: number; min_tokens?: number; dry_run?: boolean; wait_ms?: number; timeout_ms?: number;
  request_id?: string; resume?: Point; parts: samya.Part[]; ttl_ms: number; holder?: string; lease: string;
  consistency?: "exact" | "bounded" | "local"; max_age_ms?: number; resume_token?: string; until_limit?: number;
  limit: number; parent?: string; expected_version?: number; wait_applied?: boolean; subtree?: boolean; workers: number; of: number;
}

interface Point {
  request_id: string;
  attempt: number;
  not_after_ms: number;
  tried: string[] | null;
}

type Result = Record<string, unknown>;

const clients = new Map<string, samya.Client>();
const cancels = new Map<number, AbortController>();
const held = new Map<string, samya.Lease>();
const kept = new Map<string, samya.KeptLease>();

/** The time between two acquires of a worker, in milliseconds: the machine is shared. */
const burstPause = 5;

function resumeOf(p: Point | undefined): samya.ResumePoint | undefined {
  return p && { requestId: p.request_id, attempt: p.attempt, notAfter: p.not_after_ms, tried: p.tried ?? [] };
}

/** Tells an error as all drivers do. */
function failure(e: unknown): Result {
  if (!(e instanceof samya.SamyaError)) {
    return { kind: "Fault", message: String(e instanceof Error ? e.stack : e) };
  }
  const r = e.resume;
  return {
    kind: e.constructor.name.replace(/Error$/, ""), reason: e.reason, message: e.message, entity: e.entity, request_id: e.requestId,
    lacking: e.lacking, retry_after_ms: e.retryAfter, left: e.left, limit: e.limit, violations: e.violations,
    resume: r && { request_id: r.requestId, attempt: r.attempt, not_after_ms: r.notAfter, tried: r.tried },
  };
}

async function call(op: string, a: Args, signal: AbortSignal): Promise<Result> {
  switch (op) {
    case "open":
      clients.set(a.client as string, new samya.Client({
        targets: a.targets ?? [], token: a.token, tls: a.ca === undefined ? undefined : { ca: readFileSync(a.ca) },
      }));
      return {};
    case "cancel":
      cancels.get(a.of)?.abort();
      return {};
    case "kept":
      return { held: kept.get(a.lease)?.signal.aborted === false, why: String(kept.get(a.lease)?.signal.reason ?? "") };
    case "unkeep":
      await kept.get(a.lease)?.stop();
      return {};
  }
  const c = clients.get(a.client ?? "main");
  if (c === undefined) {
    throw new Error(`there is no client "${a.client}"`);
  }
  const o = { timeout: a.timeout_ms, signal, requestId: a.request_id, resume: resumeOf(a.resume) };
  switch (op) {
    case "acquire": {
      const g = await c.acquire(a.entity, a.tokens, { ...o, wait: a.wait_ms, minTokens: a.min_tokens, dryRun: a.dry_run });
      return { tokens: g.tokens, left: g.left, site: g.site, request_id: g.requestId };
    }
    case "release": {
      const r = await c.release(a.entity, a.tokens, o);
      return { tokens: r.tokens, left: r.left, site: r.site, request_id: r.requestId, parked: r.parked };
    }
    case "acquire_all": {
      const g = await c.acquireAll(a.parts, { ...o, wait: a.wait_ms });
      return { site: g.site, request_id: g.requestId };
    }
    case "acquire_lease":
      return told(await c.acquireLease(a.entity, a.tokens, a.ttl_ms, { ...o, wait: a.wait_ms, holder: a.holder }));
    case "renew":
      return told(await leaseOf(c, a).renew(a.ttl_ms, o));
    case "commit":
      return { ...(await leaseOf(c, a).commit(a.tokens, o)) };
    case "return_lease":
      return { tokens: (await leaseOf(c, a).release(a.tokens, o)).tokens };
    case "keep":
      kept.set(a.lease, leaseOf(c, a).keep());
      return {};
    case "watch":
      return watch(c, a, signal);
    case "burst":
      return burst(c, a, signal);
    case "entity": {
      const e = await c.entity(a.entity, { ...o, consistency: a.consistency, maxAge: a.max_age_ms });
      return { ...e };
    }
    case "create":
      await c.createEntity(a.entity, a.limit, { ...o, parent: a.parent });
      return {};
    case "set_limit": {
      const l = await c.setLimit(a.entity, a.limit, { ...o, expectedVersion: a.expected_version, waitApplied: a.wait_applied });
      return { limit: l.limit, version: l.version, may_exceed_by: l.mayExceedBy };
    }
    case "delete":
      await c.deleteEntity(a.entity, { ...o, subtree: a.subtree });
      return {};
  }
  throw new Error(`there is no call "${op}"`);
}

function leaseOf(c: samya.Client, a: Args): samya.Lease {
  return held.get(a.lease) ?? c.leaseNamed(a.lease, a.entity);
}

function told(l: samya.Lease): Result {
  held.set(l.name, l);
  return { lease: l.name, tokens: l.tokens, lasts_ms: l.expires - Date.now() };
}

/** Tells the states of an entity, until it has a limit or is deleted. */
async function watch(c: samya.Client, a: Args, signal: AbortSignal): Promise<Result> {
  const states: Result[] = [];
  let token = "";
  for await (const s of c.watch(a.entity, { resumeToken: a.resume_token, signal })) {
    token = s.resumeToken;
    states.push({ limit: s.limit, version: s.version, deleted: s.deleted });
    if (s.limit === a.until_limit) {
      break;
    }
  }
  return { first: states[0], last: states.at(-1), states: states.length, resume_token: token };
}

/** Acquires single tokens until it is canceled, and finds out each unknown outcome. */
async function burst(c: samya.Client, a: Args, signal: AbortSignal): Promise<Result> {
  let granted = 0, resumed = 0, unknown = 0, failed = "";
  const worker = async (): Promise<void> => {
    while (!signal.aborted) {
      let last: samya.OutcomeUnknownError | undefined;
      for (let tries = 0; ; tries++) {
        try {
          const grant = await c.acquire(a.entity, 1, { resume: last });
          granted += grant.tokens;
        } catch (e) {
          if (e instanceof samya.OutcomeUnknownError && tries < 8) {
            resumed++;
            last = e;
            continue;
          }
          if (e instanceof samya.OutcomeUnknownError) {
            unknown++;
          } else {
            failed = String(e);
          }
        }
        break;
      }
      await new Promise((done) => setTimeout(done, burstPause));
    }
  };
  await Promise.all(Array.from({ length: a.workers }, worker));
  return { granted, resumed, unknown, failed };
}

const under: Promise<void>[] = [];
for await (const line of createInterface({ input: process.stdin })) {
  const { id, op, with: args } = JSON.parse(line) as { id: number; op: string; with: Args | null };
  const cancel = new AbortController();
  cancels.set(id, cancel);
  under.push(call(op, args ?? ({} as Args), cancel.signal)
    .then((ok): Result => ({ id, ok }), (e: unknown): Result => ({ id, error: failure(e) }))
    .then((reply) => {
      cancels.delete(id);
      process.stdout.write(JSON.stringify(reply) + "\n");
    }));
}
for (const c of cancels.values()) {
  c.abort();
}
for (const c of clients.values()) {
  c.close();
}
await Promise.all(under);
