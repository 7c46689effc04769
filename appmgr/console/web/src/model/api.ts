// The shapes of samya's HTTP API that the console reads. Times are milliseconds since the
// Unix epoch, tokens are whole numbers. docs/api.md explains the members.

export type Role = "viewer" | "client" | "operator" | "admin";

export interface Caller {
  name: string;
  role: Role;
  prefixes: string[];
  /** Nobody is asked who he is: the cluster has no access file. */
  open: boolean;
  app_manager: string;
  cluster: string;
}

export interface Site {
  name: string;
  region: string;
  address: string;
  health: string;
  round_trip_ms: number | null;
  oldest_version: number;
  newest_version: number;
  refusal?: string;
  node?: string;
  term?: number;
  standbys?: number;
}

export interface Sites {
  cluster: string;
  answered_by: string;
  sites: Site[];
}

export interface Member {
  name: string;
  state: string;
  knows: boolean;
  region: string;
  address: string;
  health: string;
  waits_for: string;
  heir?: string;
  drain?: { entities: number; leases: number; claims: number; tokens: number; records_ms: number; unclear: string[]; emptied: boolean };
  rescued?: boolean;
}

export interface Members {
  version: number;
  behind: number;
  waits_for: string;
  answered_by: string;
  members: Member[];
}

export interface Version {
  version: number;
  complete: boolean;
  sites: { site: string; version: number; oldest: number; newest: number; build: string; known: boolean; problem?: string }[];
}

export interface Mode {
  protocol: string;
  version: number;
  complete: boolean;
  sites: { site: string; protocol: string; configured: string; known: boolean }[];
}

export interface Surveyed {
  site: string;
  known: boolean;
  problem?: string;
  up_ms: number;
  /** What a site waits for that does not serve yet. */
  waits_for?: string;
  entities: number;
  tokens_left: number;
  tokens_out: number;
  tokens_offered: number;
  leases: number;
  waiting: number;
  acquires_granted: number;
  acquires_refused: number;
  releases: number;
  peers: { site: string; connected: boolean; round_trip_ms: number | null }[];
}

export interface Survey {
  complete: boolean;
  sites: Surveyed[];
}

export interface Entity {
  name: string;
  limit: number;
  generation: number;
  version: number;
  parent?: string;
  children?: number;
  per?: string;
  kind?: string;
  time_zone?: string;
  keys?: boolean;
}

export interface Page {
  entities: Entity[];
  next_page_token: string;
}

export interface Share {
  site: string;
  left: number | null;
  offered: number | null;
  net: number | null;
  waiting: number | null;
  redistributions: number | null;
  transfers: number | null;
  age_ms: number | null;
  known: boolean;
}

export interface EntityStatus extends Entity {
  available: number;
  acquired: number;
  in_transit: number | null;
  complete: boolean;
  consistent: boolean;
  debt: number;
  may_exceed_by: number;
  surplus: number;
  written_off: number;
  window_ends_ms?: number;
  shares: Share[];
}

export interface Watched extends EntityStatus {
  deleted: boolean;
  resume_token: string;
}

/** What a site expects of its tokens out, from the time of a point on, in tokens beyond those out then. */
export interface Forecast {
  /** At the end of the horizon. */
  expected: number;
  /** The highest on the way: exceeded in half of the cases, and in one of twenty. */
  median: number;
  high: number;
  horizon_ms: number;
}

export interface Point {
  at_ms: number;
  /** The period that ended then; granted, refused and released are of the period. */
  took_ms: number;
  granted: number;
  refused: number;
  released: number;
  waiting: number;
  left: number;
  net: number;
  forecast: Forecast | null;
}

export interface Move {
  at_ms: number;
  from: string;
  to: string;
  tokens: number;
  by: string;
}

export interface Activity {
  complete: boolean;
  now_ms: number;
  sites: { site: string; known: boolean; problem?: string; model?: string; points?: Point[]; moves?: Move[] }[];
}

export interface Lease {
  name: string;
  entity: string;
  tokens: number;
  remaining_ms: number;
  holder: string;
}

export interface Leases {
  leases: Lease[];
  next_page_token: string;
  missing: string[];
}

export interface Change {
  at_ms: number;
  caller: string;
  request_id: string;
  old_limit: number | null;
  new_limit: number;
  version: number;
  site: string;
  kind: string;
}

export interface History {
  complete: boolean;
  changes: Change[];
  missing_sites: string[];
}

export interface Finding {
  id: string;
  severity: "critical" | "warning" | "notice";
  labels: Record<string, string>;
  summary: string;
  means: string;
  do: string;
  runbook: string;
  value?: number;
  bound?: string;
  where?: string;
}

export interface Report {
  verdict: string;
  cluster?: string;
  looked_seconds?: number;
  processes?: { job: string; name: string; region: string; instance: string; state: string; problem?: string }[];
  findings: Finding[];
  left_off: number;
  rules?: { id: string; needs_seconds: number; judged_seconds: number; judged: boolean }[];
  at_ms?: number;
}

/** The addition of a dry run to the answer that the change would get. */
export interface DryRun {
  complete: boolean;
  effects: string[];
  tokens_short: number;
  releases_needed: number;
  sites: { site: string; left_before: number; left_after: number }[];
}

/** The answer to a change, or to its dry run. */
export interface Changed extends Partial<Entity> {
  may_exceed_by?: number;
  missing_sites?: string[];
  member?: Member;
  dry_run?: DryRun;
}
