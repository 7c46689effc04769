import { Call, type Step } from "./call.js";
import { type Clock, sleep } from "./clock.js";
import { ClosedError } from "./errors.js";
import { type Decider } from "./movement.js";
import { type Json, type Outcome, type Over } from "./outcome.js";
import { timeoutOf } from "./requests.js";
import { linked, within } from "./signals.js";
import { Targets } from "./targets.js";
import { type HttpRequest, type LineStream, type Transport } from "./transport.js";
import { type CallOptions } from "./types.js";

/** What a call asks; the decider adds the members of each try to the body. */
export interface Ask {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  /** The body; for GET and DELETE the query. */
  readonly body?: Json;
  readonly decider: Decider;
  /** The members that an answer to this has. */
  readonly expects?: readonly string[];
}

export interface RunnerOptions {
  readonly targets: readonly URL[];
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: () => number;
  readonly timeout: number;
  readonly repeatTime: number;
  readonly tryTime: number;
  readonly token: (() => string | Promise<string>) | undefined;
}

/** Carries calls through their steps: the thin shell around Call. */
export class Runner {
  readonly targets: Targets;
  /** Ends what is under way when the client is closed. */
  private readonly life = new AbortController();

  constructor(readonly o: RunnerOptions) {
    this.targets = new Targets(o.targets.length, o.random);
  }

  get closed(): AbortSignal {
    return this.life.signal;
  }

  close(): void {
    this.life.abort(new ClosedError({ reason: "CLIENT_CLOSED", message: "the client is closed" }));
    this.o.transport.close();
  }

  /** Makes a call, and returns the body of its answer. */
  async run(ask: Ask, o: CallOptions = {}): Promise<unknown> {
    return this.steps(ask, o, (target, request, signal) => this.o.transport.send(target, request, signal));
  }

  /** Begins a watch: the answer is a stream of lines, whose target is told too. */
  async open(ask: Ask, o: CallOptions): Promise<{ stream: LineStream; target: number }> {
    const opened = await this.steps(ask, o, async (target, request, signal, index) => {
      const got = await this.o.transport.open(target, request, signal);
      return "lines" in got ? { kind: "done", body: { stream: got, target: index } } : got;
    });
    return opened as { stream: LineStream; target: number };
  }

  private async steps(
    ask: Ask, o: CallOptions,
    send: (target: URL, request: HttpRequest, signal: AbortSignal, index: number) => Promise<Outcome>,
  ): Promise<unknown> {
    const { clock } = this.o;
    const end = linked(o.signal, this.closed);
    try {
      const begun = clock.now();
      const deadline = begun.mono + (timeoutOf(o.timeout) ?? this.o.timeout + ask.decider.wait);
      const call = new Call(ask.decider, this.targets, { deadline, tryTime: this.o.tryTime, repeatTime: this.o.repeatTime });
      let over = this.over(o.signal);
      let step: Step = over === undefined ? call.begin(begun) : call.fail(over);
      for (;;) {
        switch (step.kind) {
          case "end":
            return step.body;
          case "fail":
            throw step.error;
          case "pause":
            await sleep(clock, step.ms, end.signal);
            over = this.over(o.signal);
            step = over === undefined ? call.resumed(clock.now()) : call.fail(over);
            break;
          case "try": {
            const outcome = await this.attempt(ask, step, end.signal, send);
            step = call.told(outcome, clock.now(), this.over(o.signal));
          }
        }
      }
    } finally {
      end.unlink();
    }
  }

  /** Makes a single try, which ends at its time or with the call. */
  private async attempt(
    ask: Ask, step: Step & { kind: "try" }, end: AbortSignal,
    send: (target: URL, request: HttpRequest, signal: AbortSignal, index: number) => Promise<Outcome>,
  ): Promise<Outcome> {
    const { clock } = this.o;
    const over = linked(end);
    let silent = false;
    const stopTimer = clock.after(step.by - clock.now().mono, () => {
      silent = true;
      over.abort();
    });
    try {
      let request: HttpRequest;
      try {
        request = await within(this.request(ask), over.signal);
      } catch (cause) {
        // Without its token the request is not sent at all.
        return { kind: "unsent", cause, silent };
      }
      const outcome = await send(this.o.targets[step.target] as URL, request, over.signal, step.target);
      return outcome.kind === "lost" || outcome.kind === "unsent" ? { ...outcome, silent } : outcome;
    } finally {
      stopTimer();
      over.unlink();
    }
  }

  private async request(ask: Ask): Promise<HttpRequest> {
    const members = { ...ask.body, ...ask.decider.next() };
    const headers: Record<string, string> = { accept: "application/json" };
    const expects = ask.expects ?? [];
    const token = await this.o.token?.();
    if (token !== undefined) {
      headers["authorization"] = `Bearer ${token}`;
    }
    if (ask.method === "POST" || ask.method === "PATCH") {
      headers["content-type"] = "application/json";
      return { method: ask.method, path: ask.path, headers, body: JSON.stringify(members), expects };
    }
    const query = new URLSearchParams(Object.entries(members).map(([k, v]): [string, string] => [k, String(v)])).toString();
    return { method: ask.method, path: query === "" ? ask.path : `${ask.path}?${query}`, headers, body: undefined, expects };
  }

  /** Why a call is over before its time; undefined while it is not. */
  over(signal: AbortSignal | undefined): Over | undefined {
    if (signal?.aborted) {
      return { kind: "canceled", cause: signal.reason };
    }
    return this.closed.aborted ? { kind: "closed" } : undefined;
  }
}
