import { sleep } from "./clock.js";
import { type SamyaError } from "./errors.js";
import { type Json, type Outcome, isObject, refusalOf } from "./outcome.js";
import { Question } from "./question.js";
import { entityPath, stateOf } from "./requests.js";
import { type Runner } from "./runner.js";
import { linked } from "./signals.js";
import { type EntityState, type WatchOptions } from "./types.js";

/** How long a watch that has broken off looks for another target, in milliseconds. */
const resumeTime = 30_000;

/** The pause before a watch is resumed that has told nothing, doubled up to `lastResume`. */
const firstResume = 50;
const lastResume = 2_000;

/**
 * Decides how a watch goes on: a state moves the resume token, the end of a stream leads to
 * a pause and a further stream from there, and a problem that no repeat heals ends it.
 */
export class WatchState {
  private pauseFor = firstResume;

  constructor(
    private readonly entity: string,
    public token: string,
  ) {}

  /** Reads a line: a state, or the outcome that ends the stream. */
  line(text: string): { state: EntityState } | { outcome: Outcome } {
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch (cause) {
      return { outcome: { kind: "lost", cause } };
    }
    if (!isObject(body)) {
      return { outcome: { kind: "lost", cause: new Error("a line that is no object") } };
    }
    const refusal = refusalOf(body["problem"]);
    if (refusal !== undefined) {
      return { outcome: { kind: "refused", refusal } };
    }
    const state = stateOf(body);
    this.token = state.resumeToken;
    this.pauseFor = firstResume;
    return { state };
  }

  /** After the end of a stream: how long to pause, or the error that ends the watch. */
  ended(outcome: Outcome): { ms: number } | { error: SamyaError } {
    const q = new Question({ entity: this.entity });
    if (q.judge(outcome)) {
      return { error: q.final() };
    }
    const ms = this.pauseFor;
    this.pauseFor = Math.min(2 * ms, lastResume);
    return { ms };
  }
}

/** Watches an entity until it is deleted; a broken stream is resumed at another target. */
export async function* watch(runner: Runner, entity: string, o: WatchOptions): AsyncGenerator<EntityState, void, void> {
  const watching = new WatchState(entity, o.resumeToken ?? "");
  const { clock } = runner.o;
  for (;;) {
    const body: Json = watching.token === "" ? {} : { resume_token: watching.token };
    const ask = { method: "GET", path: entityPath(entity, "watch"), body, decider: new Question({ entity }) } as const;
    const { stream, target } = await runner.open(ask, { timeout: resumeTime, signal: o.signal });
    let outcome: Outcome = { kind: "lost", cause: new Error("the target ended the watch") };
    const begun = clock.now().mono;
    const end = linked(o.signal, runner.closed);
    const close = (): void => stream.close();
    end.signal.addEventListener("abort", close, { once: true });
    if (end.signal.aborted) {
      close();
    }
    try {
      for await (const text of stream.lines) {
        const got = watching.line(text);
        if ("outcome" in got) {
          outcome = got.outcome;
          break;
        }
        yield got.state;
        if (got.state.deleted) {
          return;
        }
      }
    } catch (cause) {
      outcome = { kind: "lost", cause };
    } finally {
      stream.close();
      end.unlink();
    }
    const over = runner.over(o.signal);
    if (over !== undefined) {
      throw new Question({ entity }).final(over);
    }
    const now = clock.now().mono;
    runner.targets.learn(target, outcome, now, now - begun, 0);
    const next = watching.ended(outcome);
    if ("error" in next) {
      throw next.error;
    }
    const pause = linked(o.signal, runner.closed);
    await sleep(clock, next.ms, pause.signal);
    pause.unlink();
  }
}
