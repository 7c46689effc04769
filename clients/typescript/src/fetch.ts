import { type Outcome, outcomeOf } from "./outcome.js";
import { linked } from "./signals.js";
import { type HttpRequest, type LineStream, type Transport, linesOf } from "./transport.js";

/**
 * A transport over fetch, for a program that has to send everything through a fetch of its
 * own. Fetch does not tell whether a request had left: each failure counts as a lost answer,
 * and the next try as a further attempt, which is slower and as safe.
 */
export class FetchTransport implements Transport {
  constructor(private readonly fetch: typeof globalThis.fetch = globalThis.fetch) {}

  async send(target: URL, request: HttpRequest, signal: AbortSignal): Promise<Outcome> {
    try {
      const response = await this.ask(target, request, signal);
      return outcomeOf(response.status, response.headers.get("content-type") ?? "", await response.text(), request.expects);
    } catch (cause) {
      return { kind: "lost", cause };
    }
  }

  async open(target: URL, request: HttpRequest, signal: AbortSignal): Promise<LineStream | Outcome> {
    const end = linked(signal);
    try {
      const response = await this.ask(target, request, end.signal);
      if (response.status === 200 && response.body !== null) {
        return { lines: linesOf(response.body as unknown as AsyncIterable<Uint8Array>), close: end.abort };
      }
      return outcomeOf(response.status, response.headers.get("content-type") ?? "", await response.text());
    } catch (cause) {
      return { kind: "lost", cause };
    } finally {
      // A stream that has begun ends when it is closed.
      end.unlink();
    }
  }

  private ask(target: URL, request: HttpRequest, signal: AbortSignal): Promise<Response> {
    return this.fetch(new URL(request.path, target), {
      method: request.method, headers: request.headers, body: request.body ?? null, signal, redirect: "error",
    });
  }

  close(): void {
    // Nothing is held open between two calls.
  }
}
