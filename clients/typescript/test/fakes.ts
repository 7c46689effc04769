import { type Now } from "../src/call.js";
import { type Clock } from "../src/clock.js";
import { type ClientOptions, Client } from "../src/index.js";
import { type Outcome } from "../src/outcome.js";
import { type HttpRequest, type LineStream, type Transport } from "../src/transport.js";

/** A clock that goes on only when it is told to. */
export class FakeClock implements Clock {
  private at = 0;
  private timers: { at: number; f: () => void }[] = [];

  now(): Now {
    return { mono: this.at, wall: 1_700_000_000_000 + this.at };
  }

  after(ms: number, f: () => void): () => void {
    const timer = { at: this.at + ms, f };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((t) => t !== timer);
    };
  }

  /** How many timers wait. */
  get waiting(): number {
    return this.timers.length;
  }

  /** Lets time pass, timer by timer, with all that follows from each. */
  async advance(ms: number): Promise<void> {
    const end = this.at + ms;
    await settle();
    for (;;) {
      const next = this.timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) {
        break;
      }
      this.timers = this.timers.filter((t) => t !== next);
      this.at = Math.max(this.at, next.at);
      next.f();
      await settle();
    }
    this.at = end;
  }
}

/** Waits until all that can go on without time has done so. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) {
    await new Promise((done) => setImmediate(done));
  }
}

export interface Sent {
  target: string;
  request: HttpRequest;
  body: Record<string, unknown>;
}

type Answer = (sent: Sent, signal: AbortSignal) => Outcome | LineStream | Promise<Outcome | LineStream>;

/** A transport that answers as a test says, and keeps what was sent. */
export class FakeTransport implements Transport {
  readonly sent: Sent[] = [];
  closed = false;

  constructor(public answer: Answer) {}

  async send(target: URL, request: HttpRequest, signal: AbortSignal): Promise<Outcome> {
    return (await this.ask(target, request, signal)) as Outcome;
  }

  async open(target: URL, request: HttpRequest, signal: AbortSignal): Promise<LineStream | Outcome> {
    return this.ask(target, request, signal);
  }

  private ask(target: URL, request: HttpRequest, signal: AbortSignal): Promise<Outcome | LineStream> {
    const sent = { target: target.host, request, body: request.body === undefined ? {} : (JSON.parse(request.body) as Record<string, unknown>) };
    this.sent.push(sent);
    return Promise.resolve(this.answer(sent, signal));
  }

  close(): void {
    this.closed = true;
  }
}

/** A client of two targets over a fake transport and clock. */
export function client(answer: Answer, more: Partial<ClientOptions> = {}): { c: Client; transport: FakeTransport; clock: FakeClock } {
  const transport = new FakeTransport(answer);
  const clock = new FakeClock();
  const c = new Client({ targets: ["http://127.0.0.1:1", "http://127.0.0.1:2"], transport, clock, random: () => 0.5, ...more });
  return { c, transport, clock };
}

export const lost: Outcome = { kind: "lost", cause: new Error("broken") };
export const unsent: Outcome = { kind: "unsent", cause: new Error("refused") };

export function granted(tokens: number, more: object = {}): Outcome {
  return { kind: "done", body: { entity: "acme/vm", tokens, request_id: "id", site: "us", left: 7, ...more } };
}

export function refused(reason: string, more: object = {}): Outcome {
  return { kind: "refused", refusal: { reason, attempt: 0, tried: [], ...more } };
}

/** An answer that does not come before the try is ended. */
export function never(_: Sent, signal: AbortSignal): Promise<Outcome> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(lost)));
}

/** A stream of lines that ends, or breaks with an error, after them. */
export function stream(lines: object[], end?: Error | Promise<void>): LineStream & { closed: boolean } {
  let close = (): void => undefined;
  const closing = new Promise<void>((resolve) => (close = resolve));
  const s = {
    closed: false,
    close: () => {
      s.closed = true;
      close();
    },
    lines: (async function* () {
      for (const line of lines) {
        yield JSON.stringify(line);
      }
      if (end instanceof Error) {
        throw end;
      }
      await Promise.race([end, closing]);
    })(),
  };
  return s;
}
