import * as http from "node:http";
import * as https from "node:https";
import type { Socket } from "node:net";

import { type Outcome, outcomeOf } from "./outcome.js";

/** A request to any target: the path is escaped already. */
export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** The members that an answer to this has, and to something else may lack. */
  readonly expects: readonly string[];
}

/** A watch that has begun: its lines, until the target ends it or breaks the connection. */
export interface LineStream {
  readonly lines: AsyncIterable<string>;
  close(): void;
}

/**
 * Carries requests to targets. It must not repeat a request, and must call it unsent only if
 * nothing of the request can have reached the target. A signal that is aborted ends the try.
 */
export interface Transport {
  send(target: URL, request: HttpRequest, signal: AbortSignal): Promise<Outcome>;
  open(target: URL, request: HttpRequest, signal: AbortSignal): Promise<LineStream | Outcome>;
  close(): void;
}

/** Files of TLS, in PEM. */
export interface TlsOptions {
  /** The certificates of authorities that may sign for targets; default: those of the system. */
  ca?: string | Buffer | undefined;
  /** A client certificate and its key, in place of a token. */
  cert?: string | Buffer | undefined;
  key?: string | Buffer | undefined;
}

/** The bounds of an answer and of a line of a watch, in bytes. */
const maxAnswer = 4 << 20;
const maxLine = 1 << 20;

/** How long it may take to set up a connection, in milliseconds. */
const connectTime = 1_000;

/** The most connections to a target; further calls wait for one of them. */
const maxConnections = 128;

/** How long a connection may be silent before the system checks it, in milliseconds. */
const keepAliveTime = 15_000;

/**
 * The transport over node:http and node:https. Fetch can neither be given a certificate
 * authority, nor does it tell whether a request had left before its connection broke.
 */
export class NodeTransport implements Transport {
  private readonly tls: https.AgentOptions;
  private readonly plain: http.Agent;
  private readonly secure: https.Agent;

  constructor(tls: TlsOptions = {}) {
    const pool = { keepAlive: true, maxSockets: maxConnections, maxFreeSockets: maxConnections };
    this.tls = { minVersion: "TLSv1.3", ...defined(tls) };
    this.plain = new http.Agent(pool);
    this.secure = new https.Agent({ ...pool, ...this.tls });
  }

  async send(target: URL, request: HttpRequest, signal: AbortSignal): Promise<Outcome> {
    const asked = await this.ask(target, request, signal);
    if (!("response" in asked)) {
      return asked;
    }
    try {
      const text = await textOf(asked.response);
      return outcomeOf(asked.response.statusCode ?? 0, asked.response.headers["content-type"] ?? "", text, request.expects);
    } catch (cause) {
      return { kind: "lost", cause };
    }
  }

  async open(target: URL, request: HttpRequest, signal: AbortSignal): Promise<LineStream | Outcome> {
    // A watch has a connection to itself, so that it takes none from calls.
    const asked = await this.ask(target, request, signal, false);
    if (!("response" in asked)) {
      return asked;
    }
    const response = asked.response;
    if (response.statusCode === 200) {
      return { lines: linesOf(response), close: () => response.destroy() };
    }
    try {
      return outcomeOf(response.statusCode ?? 0, response.headers["content-type"] ?? "", await textOf(response));
    } catch (cause) {
      return { kind: "lost", cause };
    }
  }

  private ask(target: URL, request: HttpRequest, signal: AbortSignal, pooled = true): Promise<{ response: http.IncomingMessage } | Outcome> {
    const tls = target.protocol === "https:";
    const agent = pooled ? (tls ? this.secure : this.plain) : tls ? new https.Agent(this.tls) : new http.Agent();
    return new Promise((resolve) => {
      let sent = false;
      let connecting: NodeJS.Timeout | undefined;
      const headers: Record<string, string | number> = { ...request.headers };
      if (request.body !== undefined) {
        headers["content-length"] = Buffer.byteLength(request.body);
      }
      const req = (tls ? https : http).request(target, {
        method: request.method, path: request.path, headers, signal, agent,
      });
      const ready = (): void => {
        // What follows on the connection may reach the target.
        clearTimeout(connecting);
        sent = true;
      };
      req.once("socket", (socket: Socket) => {
        socket.setKeepAlive(true, keepAliveTime);
        if (req.reusedSocket || (!tls && !socket.connecting)) {
          ready();
          return;
        }
        connecting = setTimeout(() => req.destroy(new Error(`no connection to ${target.host} within ${connectTime} ms`)), connectTime);
        socket.once(tls ? "secureConnect" : "connect", ready);
      });
      req.once("response", (response) => resolve({ response }));
      req.on("error", (cause) => {
        clearTimeout(connecting);
        resolve({ kind: sent ? "lost" : "unsent", cause });
      });
      req.end(request.body);
    });
  }

  close(): void {
    this.plain.destroy();
    this.secure.destroy();
  }
}

/** The members of an object that are not undefined. */
function defined<T extends object>(o: T): Partial<T> {
  return Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined)) as Partial<T>;
}

async function textOf(response: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxAnswer) {
      throw new Error(`an answer of more than ${maxAnswer} bytes`);
    }
    chunks.push(chunk);
  }
  if (!response.complete) {
    throw new Error("the connection broke within an answer");
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Splits bytes into lines; the rest behind the last line is no line. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = Buffer.alloc(0);
  for await (const chunk of chunks) {
    rest = Buffer.concat([rest, chunk]);
    let end: number;
    while ((end = rest.indexOf(0x0a)) >= 0) {
      yield rest.subarray(0, end).toString("utf8");
      rest = rest.subarray(end + 1);
    }
    if (rest.length > maxLine) {
      throw new Error(`a line of more than ${maxLine} bytes`);
    }
  }
}
