import { type ResumePoint, type SamyaError } from "./errors.js";

/** Options of every call. */
export interface CallOptions {
  /**
   * How long the call may take in all, in milliseconds; default: the client's timeout, and the
   * wait of an acquire beyond it.
   */
  timeout?: number | undefined;
  /** Ends the call early. */
  signal?: AbortSignal | undefined;
}

/** Options of calls that have a request id. */
export interface RequestOptions extends CallOptions {
  /** Names the request in place of a generated id: 1 to 128 printable ASCII characters. */
  requestId?: string | undefined;
}

/** Options of acquires and releases. */
export interface MoveOptions extends RequestOptions {
  /**
   * Goes on with a request of unknown outcome: the error of that request, or its kept resume
   * point. Entity and tokens must be the same. Undefined changes nothing, so that a loop can
   * pass the error of the round before.
   */
  resume?: SamyaError | ResumePoint | undefined;
}

export interface AcquireAllOptions extends MoveOptions {
  /**
   * How long to wait for tokens of other sites, in milliseconds: 0 to 60,000. 0 answers at
   * once. Default: as the site decides, 5 s.
   */
  wait?: number | undefined;
}

export interface AcquireOptions extends AcquireAllOptions {
  /** Accept fewer tokens, at least this many, once it is known that not all can be had. */
  minTokens?: number | undefined;
  /** Only tell how many tokens would be granted at once. Nothing moves. */
  dryRun?: boolean | undefined;
}

export interface LeaseOptions extends AcquireOptions {
  /** Names the holder of the lease, for lists of leases. */
  holder?: string | undefined;
}

/** The answer to an acquire. */
export interface Grant {
  /** All tokens asked for, or fewer with minTokens. */
  readonly tokens: number;
  /** The tokens left at the site just after the grant. */
  readonly left: number;
  readonly site: string;
  readonly requestId: string;
}

/** The answer to a release. */
export interface Receipt extends Grant {
  /** The release is durable and not counted yet: another site has to be asked before. */
  readonly parked: boolean;
}

/** The tokens of a single entity that acquireAll takes. */
export interface Part {
  readonly entity: string;
  readonly tokens: number;
}

/** The answer to acquireAll, always of all tokens asked for. */
export interface AllGrant {
  readonly site: string;
  readonly requestId: string;
}

export interface ReadOptions extends CallOptions {
  /** How many sites a read asks; default: exact. */
  consistency?: "exact" | "bounded" | "local" | undefined;
  /** With bounded: the greatest age of figures, in milliseconds, 0 to 1 h. */
  maxAge?: number | undefined;
}

/** An entity, and the sum of the books of the sites about it. */
export interface Entity {
  readonly name: string;
  readonly limit: number;
  /** Tells the entity apart from earlier entities of the same name. */
  readonly generation: number;
  /** Counts the changes of the limit, from 1. */
  readonly version: number;
  /** The entity right above; empty for none. */
  readonly parent: string;
  readonly children: number;
  /** The tokens that can be acquired now, and those that are out, over the sites seen. */
  readonly available: number;
  readonly acquired: number;
  /** Tokens on their way between sites; undefined unless complete. */
  readonly inTransit: number | undefined;
  /** By how many tokens the limit may be exceeded at most. */
  readonly mayExceedBy: number;
  /** Every site has answered. */
  readonly complete: boolean;
  /** Tokens in transit are counted once; only an exact read tells. */
  readonly consistent: boolean;
}

/** A state of a watched entity. */
export interface EntityState extends Entity {
  /** The entity was deleted: no state follows. */
  readonly deleted: boolean;
  /** Continues a later watch after this state. */
  readonly resumeToken: string;
}

export interface WatchOptions {
  /** Begins after the state of this token; default: with the present state. */
  resumeToken?: string | undefined;
  signal?: AbortSignal | undefined;
}

export interface CreateOptions extends RequestOptions {
  /** Creates the entity below another. */
  parent?: string | undefined;
}

export interface LimitOptions extends RequestOptions {
  /** Change the limit only if the entity has this version. */
  expectedVersion?: number | undefined;
  /** Answer once all sites have applied the change, after 10 s at most. */
  waitApplied?: boolean | undefined;
}

/** The outcome of a change of a limit. */
export interface LimitChange {
  readonly limit: number;
  readonly version: number;
  readonly mayExceedBy: number;
  /** Sites not known to have applied the change. */
  readonly missingSites: readonly string[];
}

export interface DeleteOptions extends RequestOptions {
  /** Also delete all entities below the entity. */
  subtree?: boolean | undefined;
}
