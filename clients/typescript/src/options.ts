import { readFile } from "node:fs/promises";

import { type Clock, systemClock } from "./clock.js";
import { type RunnerOptions } from "./runner.js";
import { NodeTransport, type TlsOptions, type Transport } from "./transport.js";

/** The most targets of a client. */
const maxTargets = 128;

/** The targets of a client, and the bounds of its patience. Only targets must be set. */
export interface ClientOptions {
  /** HTTP addresses of app managers, nearest first: 1 to 128, such as "https://am-us:8080". */
  targets: readonly string[];
  /** The bearer token to show, or a function that returns it, such as tokenFile. */
  token?: string | (() => string | Promise<string>) | undefined;
  /** Certificates for targets of https. */
  tls?: TlsOptions | undefined;
  /** How long a call may take, in milliseconds; default: 10,000. A wait for tokens is added. */
  timeout?: number | undefined;
  /**
   * How long beyond its deadline a request of unknown outcome can be resumed, in milliseconds;
   * default: 60,000. With the deadline it must stay below the request retention of the sites
   * less their clock skew, 4m50s by default.
   */
  repeatTime?: number | undefined;
  /** How long a target may be silent before the next is asked; default: 2,000 ms. */
  tryTime?: number | undefined;
  /** Carries the requests; default: a NodeTransport. */
  transport?: Transport | undefined;
  /** Time and random numbers in [0, 1), for tests. */
  clock?: Clock | undefined;
  random?: (() => number) | undefined;
}

/** Checks options and fills in the defaults. The TypeError names each option at fault. */
export function complete(o: ClientOptions): RunnerOptions {
  const faults: string[] = [];
  if (o.targets.length < 1 || o.targets.length > maxTargets) {
    faults.push(`targets: ${o.targets.length}, at least 1 and at most ${maxTargets}`);
  }
  const targets: URL[] = [];
  for (const t of o.targets) {
    const u = parse(t);
    if (u === null || (u.protocol !== "http:" && u.protocol !== "https:") || u.pathname !== "/" || u.search + u.hash !== "") {
      faults.push(`targets: "${t}", want http://host:port or https://host:port`);
      continue;
    }
    if (targets.some((other) => other.origin === u.origin)) {
      faults.push(`targets: "${t}" is given twice`);
    }
    if (o.token !== undefined && u.protocol === "http:" && !loopback(u.hostname)) {
      faults.push(`targets: "${t}": a token is not sent to another machine in clear`);
    }
    if (o.tls !== undefined && u.protocol === "http:") {
      faults.push(`targets: "${t}": tls is given, want https`);
    }
    targets.push(u);
  }
  for (const key of ["timeout", "repeatTime", "tryTime"] as const) {
    const v = o[key];
    if (v !== undefined && !(v > 0 && Number.isFinite(v))) {
      faults.push(`${key}: ${v}, want a number of milliseconds above 0`);
    }
  }
  if (faults.length > 0) {
    throw new TypeError(`options of a samya client: ${faults.join("; ")}`);
  }
  const token = o.token;
  return {
    targets,
    transport: o.transport ?? new NodeTransport(o.tls),
    clock: o.clock ?? systemClock,
    random: o.random ?? Math.random,
    timeout: o.timeout ?? 10_000,
    repeatTime: o.repeatTime ?? 60_000,
    tryTime: o.tryTime ?? 2_000,
    token: typeof token === "string" ? () => token : token,
  };
}

function parse(t: string): URL | null {
  try {
    return new URL(t);
  } catch {
    return null;
  }
}

/** Whether an address is of this machine. */
function loopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d+){3}$/.test(host);
}

/** How long a token of a file is used before the file is read again, in milliseconds. */
const tokenTime = 10_000;

/** Reads the token of a file, and again every ten seconds. */
export function tokenFile(path: string, clock: Clock = systemClock): () => Promise<string> {
  let read = -Infinity;
  let token = "";
  return async () => {
    const now = clock.now().mono;
    if (now - read >= tokenTime) {
      token = (await readFile(path, "utf8")).trim();
      read = now;
    }
    return token;
  };
}
