export { Client } from "./client.js";
export { type ClientOptions, tokenFile } from "./options.js";
export * from "./errors.js";
export { KeptLease, Lease, type LeaseFacts } from "./lease.js";
export { type HttpRequest, type LineStream, NodeTransport, type TlsOptions, type Transport } from "./transport.js";
export { FetchTransport } from "./fetch.js";
export { type Outcome, type Refusal } from "./outcome.js";
export { type Clock } from "./clock.js";
export type * from "./types.js";
