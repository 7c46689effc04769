import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Call, type Step } from "../src/call.js";
import { type Decider, Movement } from "../src/movement.js";
import { type Outcome, type Over } from "../src/outcome.js";
import { Question } from "../src/question.js";
import { Targets } from "../src/targets.js";

// The tables are for all clients: see clients/conformance.
const tables = new URL("../../../conformance/", import.meta.url);

function table<T>(name: string): T[] {
  return JSON.parse(readFileSync(new URL(name, tables), "utf8")) as T[];
}

interface Told {
  kind: "done" | "unsent" | "lost" | "refused";
  reason?: string; attempt?: number; tried?: string[]; site?: string; retry_after_ms?: number; silent?: boolean;
}

function outcome(t: Told): Outcome {
  switch (t.kind) {
    case "done":
      return { kind: "done", body: {} };
    case "unsent":
      return { kind: "unsent", cause: new Error("refused"), silent: t.silent ?? false };
    case "lost":
      return { kind: "lost", cause: new Error("broken"), silent: t.silent ?? false };
    case "refused":
      return {
        kind: "refused",
        refusal: { reason: t.reason ?? "", site: t.site, retryAfter: t.retry_after_ms, attempt: t.attempt ?? 0, tried: t.tried ?? [] },
      };
  }
}

function over(kind: string | undefined): Over | undefined {
  return kind === undefined ? undefined : kind === "canceled" ? { kind, cause: new Error("enough") } : { kind: kind as "deadline" | "closed" };
}

interface Decision {
  name: string;
  kind: "acquire" | "release" | "dry" | "read" | "change";
  resume?: { attempt: number; tried: string[] };
  tries: { sent: object; outcome: Told; settled: boolean }[];
  over?: string;
  final?: { reason: string; resume?: { attempt: number; tried: string[] } };
}

function decider(d: Decision): Decider {
  switch (d.kind) {
    case "read":
      return new Question({ entity: "acme/vm" });
    case "change":
      return new Question({ entity: "acme/vm", id: "id-1", moves: true });
    default:
      return new Movement({
        id: "id-1", entity: "acme/vm", wait: 0, dry: d.kind === "dry",
        resume: d.resume && { requestId: "id-1", notAfter: 5_000, ...d.resume },
      });
  }
}

for (const d of table<Decision>("decisions.json")) {
  test(`decision: ${d.name}`, () => {
    const m = decider(d);
    m.expire(5_000);
    for (const t of d.tries) {
      const { request_id, not_after, ...sent } = m.next();
      assert.deepEqual(sent, t.sent);
      assert.equal(request_id, d.kind === "read" ? undefined : "id-1");
      assert.equal(not_after, d.kind === "acquire" || d.kind === "release" ? "1970-01-01T00:00:05.000Z" : undefined);
      assert.equal(m.judge(outcome(t.outcome)), t.settled);
    }
    if (d.final !== undefined) {
      const e = m.final(over(d.over));
      assert.equal(e.reason, d.final.reason);
      assert.equal(e.entity, "acme/vm");
      const want = d.final.resume && { requestId: "id-1", notAfter: 5_000, ...d.final.resume };
      assert.deepEqual(e.resume, want);
    }
  });
}

interface Steps {
  name: string;
  targets: number;
  deadline_ms: number;
  wait_ms: number;
  resume?: { attempt: number; tried: string[]; not_after_ms: number };
  steps: {
    want: { try?: number; by_ms?: number; pause_ms?: number; end?: boolean; fail?: string };
    after_ms?: number;
    outcome?: Told;
    over?: string;
  }[];
}

function shown(s: Step): object {
  switch (s.kind) {
    case "try":
      return { try: s.target, by_ms: s.by };
    case "pause":
      return { pause_ms: s.ms };
    case "end":
      return { end: true };
    case "fail":
      return { fail: s.error.reason };
  }
}

for (const c of table<Steps>("calls.json")) {
  test(`call: ${c.name}`, () => {
    let now = 0;
    const time = (): { mono: number; wall: number } => ({ mono: now, wall: now });
    const resume = c.resume && { requestId: "id-1", attempt: c.resume.attempt, tried: c.resume.tried, notAfter: c.resume.not_after_ms };
    const m = new Movement({ id: "id-1", entity: "acme/vm", wait: c.wait_ms, resume });
    const call = new Call(m, new Targets(c.targets, () => 0.5), { deadline: c.deadline_ms, tryTime: 2_000, repeatTime: 60_000 });
    let step = call.begin(time());
    c.steps.forEach((s, i) => {
      assert.deepEqual(shown(step), s.want, `step ${i + 1}`);
      now += s.after_ms ?? 0;
      if (step.kind === "pause") {
        now += step.ms;
        step = call.resumed(time());
      } else if (s.outcome !== undefined) {
        step = call.told(outcome(s.outcome), time(), over(s.over));
      }
    });
  });
}
