import { type ComponentChildren, type JSX } from "preact";

import { type Feed } from "../model/feed.js";
import { clock, span } from "../model/format.js";
import { type Problem, notOffered } from "../model/problem.js";
import { type Route, href } from "../model/routes.js";

/** How a thing is, told by shape, word and colour together. */
export type Kind = "ok" | "busy" | "warn" | "bad" | "idle";

const shapes: Record<Kind, JSX.Element> = {
  ok: <circle cx="6" cy="6" r="5" />,
  busy: (
    <g>
      <circle cx="6" cy="6" r="4.4" fill="none" stroke="currentColor" stroke-width="1.6" />
      <path d="M6 1.6a4.4 4.4 0 0 1 0 8.8z" />
    </g>
  ),
  warn: <path d="M6 1 11.5 11H.5z" />,
  bad: <path d="M2.2 1 6 4.6 9.8 1 11 2.2 7.4 6 11 9.8 9.8 11 6 7.4 2.2 11 1 9.8 4.6 6 1 2.2z" />,
  idle: <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="2" />,
};

export function Mark({ kind }: { kind: Kind }): JSX.Element {
  return (
    <svg class={`mark ${kind}`} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
      {shapes[kind]}
    </svg>
  );
}

export function Status({ kind, children }: { kind: Kind; children: ComponentChildren }): JSX.Element {
  return (
    <span class="status">
      <Mark kind={kind} />
      <span>{children}</span>
    </span>
  );
}

/** How a site stands, by its seat and its health. */
export function siteKind(state: string | undefined, health: string): Kind {
  if (state === "gone" || state === "lost") {
    return state === "lost" ? "bad" : "idle";
  }
  if (health === "unreachable") {
    return "bad";
  }
  if (state === "joining" || state === "draining") {
    return "busy";
  }
  return health === "serving" ? "ok" : health === "overloaded" ? "warn" : "idle";
}

/** How a site stands, in words. */
export function siteWords(state: string | undefined, health: string): string {
  if (state === "gone" || state === "lost") {
    return state;
  }
  return state === "joining" || state === "draining" ? (health === "unreachable" ? `${state}, unreachable` : state) : health;
}

export function Link({ to, children, ...rest }: { to: Route; children: ComponentChildren; class?: string; id?: string; "aria-current"?: "page" | undefined; tabIndex?: number }): JSX.Element {
  return (
    <a href={href(to)} {...rest}>
      {children}
    </a>
  );
}

export function Section(p: { title: string; id: string; note?: ComponentChildren; tools?: ComponentChildren; children: ComponentChildren; class?: string }): JSX.Element {
  return (
    <section class={`card ${p.class ?? ""}`} aria-labelledby={p.id}>
      <header>
        <h2 id={p.id}>{p.title}</h2>
        {p.note !== undefined && <p class="note">{p.note}</p>}
        {p.tools !== undefined && <div class="tools">{p.tools}</div>}
      </header>
      {p.children}
    </section>
  );
}

export interface Fact {
  name: string;
  value: ComponentChildren;
  unit?: string;
  kind?: Kind;
}

/** Figures with their names, in a row. */
export function Facts({ facts, label }: { facts: Fact[]; label: string }): JSX.Element {
  return (
    <dl class="facts" aria-label={label}>
      {facts.map((f) => (
        <div key={f.name} class={f.kind === undefined ? "" : `fact-${f.kind}`}>
          <dt>{f.name}</dt>
          <dd>
            {f.kind !== undefined && f.kind !== "ok" && <Mark kind={f.kind} />}
            {f.value}
            {f.unit !== undefined && <span class="unit"> {f.unit}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

export function ProblemBox({ problem, children }: { problem: Problem; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="problem" role="alert">
      <p>
        <Status kind="bad">
          <strong>{problem.title}</strong>
        </Status>
      </p>
      {problem.detail !== "" && problem.fields.length === 0 && <p>{problem.detail}</p>}
      {problem.fields.length > 0 && (
        <ul>
          {problem.fields.map((f) => (
            <li key={f.field}>
              <code>{f.field}</code>: {f.problem}
            </li>
          ))}
        </ul>
      )}
      {problem.requestId !== "" && (
        <p class="note">
          {problem.reason !== "" && `${problem.reason}, `}request <code>{problem.requestId}</code>
        </p>
      )}
      {children}
    </div>
  );
}

/** Says that what is shown is of an earlier time, and since when. */
export function Stale({ feed, now, what }: { feed: Feed<unknown>; now: number; what: string }): JSX.Element | null {
  if (feed.staleSince === null || feed.problem === null) {
    return null;
  }
  if (notOffered(feed.problem)) {
    return feed.at === 0 ? <p class="empty">This app manager does not tell {what}.</p> : null;
  }
  if (feed.at === 0) {
    return feed.problem.status === 0 ? <p class="empty">Nothing was read yet, as the app manager does not answer.</p> : <ProblemBox problem={feed.problem} />;
  }
  return (
    <p class="stale">
      <Status kind="warn">
        {what.charAt(0).toUpperCase() + what.slice(1)} as of {clock(feed.at)}, stale for {span(now - feed.staleSince)}: {feed.problem.title.toLowerCase()}
        {feed.problem.status !== 0 && feed.problem.detail !== "" && ` (${feed.problem.detail})`}. Trying again.
      </Status>
    </p>
  );
}

/** A region that scrolls sideways, also by keys. */
export function Scroll({ label, children, class: more }: { label: string; children: ComponentChildren; class?: string }): JSX.Element {
  return (
    <div class={`scroll ${more ?? ""}`} role="region" aria-label={`Table: ${label}`} tabIndex={0}>
      {children}
    </div>
  );
}
