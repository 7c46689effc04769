import { type JSX } from "preact";
import { useEffect } from "preact/hooks";

import { type Changed, type DryRun } from "../model/api.js";
import { type Draft, type FieldProblem, type Request, draftOf, mayApply, requestOf } from "../model/draft.js";
import { count, counted, unknown } from "../model/format.js";
import { outcomeOpen } from "../model/problem.js";
import { type Action, actions, href } from "../model/routes.js";
import { type State } from "../model/state.js";
import { apply, tryOut } from "../shell/changes.js";
import { type Shown, mayChange, mayDrain } from "../ui/context.js";
import { Link, ProblemBox, Scroll, Status } from "../ui/parts.js";
import { SearchBox } from "../ui/searchbox.js";

const names: Record<Action, string> = { limit: "Change a limit", create: "Create an entity", drain: "Have a site leave" };

export function AdminPage(p: Shown): JSX.Element {
  const { s } = p;
  const route = s.route.page === "admin" ? s.route : { action: "limit" as const, name: "" };
  const allowed = route.action === "drain" ? mayDrain(s) : mayChange(s);
  useEffect(() => {
    const fields: Record<string, string> = route.action === "drain" ? { site: route.name } : route.action === "create" ? { parent: route.name } : {};
    p.store.dispatch({ type: "draft/open", draft: draftOf(route.action, crypto.randomUUID(), fields) });
  }, [route.action, route.name]);
  return (
    <>
      <h1>Administration</h1>
      <nav class="tabs" aria-label="Changes">
        {actions.map((a) => (
          <Link key={a} to={{ page: "admin", action: a, name: "" }} aria-current={a === route.action ? "page" : undefined}>
            {names[a]}
          </Link>
        ))}
      </nav>
      {!allowed ? <Refused p={p} action={route.action} /> : s.draft !== null && s.draft.action === route.action && <Form p={p} d={s.draft} name={route.name} />}
    </>
  );
}

/** Says who the caller is and who may do it; offers nothing that would be refused. */
function Refused({ p, action }: { p: Shown; action: Action }): JSX.Element {
  const c = p.s.caller;
  return (
    <div class="card refused">
      <p>
        <Status kind="idle">
          {c?.name === undefined || c.name === "" ? "You have" : `${c.name} has`} the role <strong>{c?.role}</strong>, which may look at everything and change nothing here.
        </Status>
      </p>
      <p>
        {action === "drain" ? "An admin may have a site leave." : "An operator or an admin may create entities and change limits."} Each change is written to the audit log with the name of the caller.
      </p>
    </div>
  );
}

/** The draft and its request as they are now: a page may lag a frame behind what was typed. */
function current(s: State, name: string): { draft: Draft; request: Request | FieldProblem[] } | null {
  const subject = s.subject.value?.name === name ? s.subject.value : null;
  return s.draft === null ? null : { draft: s.draft, request: requestOf(s.draft, subject) };
}

function Form({ p, d, name }: { p: Shown; d: Draft; name: string }): JSX.Element {
  const request = current(p.s, name)?.request ?? [];
  const wrong = Array.isArray(request) ? request : [];
  const touched = Object.values(d.fields).some((v) => v !== "");
  const ready = !Array.isArray(request);
  const set = (field: string, value: string): void => p.store.dispatch({ type: "draft/field", field, value, requestId: crypto.randomUUID() });
  const submit = (e: Event): void => {
    e.preventDefault();
    const now = current(p.store.state, name);
    if (now !== null && !Array.isArray(now.request) && now.draft.busy === "no" && now.draft.done === null) {
      void tryOut(p.store, now.request).then(() => reread(p, name));
    }
  };
  return (
    <div class="columns wide-right admin">
      <form class="card" onSubmit={submit} aria-labelledby="form-title" noValidate>
        <h2 id="form-title">{names[d.action]}</h2>
        {d.action === "limit" && <LimitFields p={p} d={d} name={name} wrong={touched ? wrong : []} set={set} />}
        {d.action === "create" && <CreateFields d={d} wrong={touched ? wrong : []} set={set} />}
        {d.action === "drain" && <DrainFields p={p} d={d} set={set} />}
        <div class="buttons">
          <button type="submit" class={d.tried === null ? "primary" : ""} disabled={!ready || d.busy !== "no" || d.done !== null}>
            {d.busy === "dry run" ? "Trying …" : "Dry run"}
          </button>
          <span class="note">changes nothing</span>
        </div>
      </form>
      <Outcome p={p} d={d} name={name} request={request} />
    </div>
  );
}

/** After a refusal: the entity may have changed meanwhile, so that the next dry run has its new version. */
function reread(p: Shown, name: string): void {
  const { draft } = p.store.state;
  if (draft?.action === "limit" && draft.problem !== null && !outcomeOpen(draft.problem)) {
    void p.pages.subject(name);
  }
}

function Field(f: { d: Draft; name: string; label: string; hint: string; wrong: FieldProblem[]; set: (n: string, v: string) => void; numeric?: boolean }): JSX.Element {
  const refused = f.d.problem?.fields.find((x) => x.field === f.name);
  const problem = refused ?? (f.wrong.find((x) => x.field === f.name && (f.d.fields[f.name] ?? "") !== ""));
  const id = `field-${f.name}`;
  return (
    <div class="field">
      <label for={id}>{f.label}</label>
      <input
        id={id}
        type="text"
        autocomplete="off"
        spellcheck={false}
        inputMode={f.numeric === true ? "numeric" : "text"}
        class={f.numeric === true ? "number" : ""}
        value={f.d.fields[f.name] ?? ""}
        aria-describedby={`${id}-hint`}
        aria-invalid={problem !== undefined}
        onInput={(e) => f.set(f.name, e.currentTarget.value)}
      />
      <p class={problem === undefined ? "note" : "note wrong"} id={`${id}-hint`}>
        {problem === undefined ? f.hint : problem.problem}
      </p>
    </div>
  );
}

function LimitFields({ p, d, name, wrong, set }: { p: Shown; d: Draft; name: string; wrong: FieldProblem[]; set: (n: string, v: string) => void }): JSX.Element {
  const { subject } = p.s;
  const e = subject.value?.name === name ? subject.value : null;
  return (
    <>
      <div class="field">
        <span class="label-like">Entity</span>
        {name !== "" && (
          <p class="chosen">
            <Link to={{ page: "entity", name }}>{name}</Link>
          </p>
        )}
        <SearchBox id="admin-entity" label="Choose an entity" placeholder={name === "" ? "Part of a name" : "Choose another"} view={p.s.search} search={(q) => void p.pages.search(q)} chosen={(n) => p.go(href({ page: "admin", action: "limit", name: n }))} />
      </div>
      {name !== "" && subject.problem !== null && e === null && <ProblemBox problem={subject.problem} />}
      {e !== null && (
        <>
          <p class="note now">
            Now {counted(e.limit, "token")}, of which {count(e.acquired)} are out and {count(e.available)} are left. Version {e.version}.
          </p>
          <Field d={d} name="limit" label="New limit" hint="tokens" wrong={wrong} set={set} numeric />
        </>
      )}
    </>
  );
}

function CreateFields({ d, wrong, set }: { d: Draft; wrong: FieldProblem[]; set: (n: string, v: string) => void }): JSX.Element {
  return (
    <>
      <Field d={d} name="name" label="Name" hint="Letters, digits, dots, dashes and underscores, in parts with slashes between, such as acme/vm" wrong={wrong} set={set} />
      <Field d={d} name="limit" label="Limit" hint="tokens" wrong={wrong} set={set} numeric />
      <Field d={d} name="parent" label="Parent (may be empty)" hint="An entity that exists. An acquire takes tokens of it as well." wrong={wrong} set={set} />
      <Field d={d} name="per" label="Per (may be empty)" hint="Makes a rate quota: tokens come back after this time, such as 1m or 1h." wrong={wrong} set={set} />
    </>
  );
}

function DrainFields({ p, d, set }: { p: Shown; d: Draft; set: (n: string, v: string) => void }): JSX.Element {
  const members = (p.s.members.value?.members ?? []).filter((m) => m.state === "member" || m.state === "draining");
  const draining = members.find((m) => m.name === d.fields["site"])?.state === "draining";
  const select = (name: string, label: string, empty: string, options: string[], hint: string): JSX.Element => (
    <div class="field">
      <label for={`field-${name}`}>{label}</label>
      <select id={`field-${name}`} value={d.fields[name] ?? ""} aria-describedby={`field-${name}-hint`} onChange={(e) => set(name, e.currentTarget.value)}>
        <option value="">{empty}</option>
        {options.map((o) => (
          <option key={o} value={o}>
            {o}
          </option>
        ))}
      </select>
      <p class="note" id={`field-${name}-hint`}>
        {hint}
      </p>
    </div>
  );
  const all = members.map((m) => m.name);
  return (
    <>
      {select("site", "Site that leaves", "choose a site", all, "It takes no new requests, hands tokens and leases to its heir, and is gone then.")}
      {draining ? (
        <div class="field">
          <label class="check">
            <input type="checkbox" checked={d.fields["cancel"] === "yes"} onChange={(e) => set("cancel", e.currentTarget.checked ? "yes" : "")} /> Stay after all
          </label>
          <p class="note">The site leaves already. What it has handed over stays with its heir.</p>
        </div>
      ) : (
        select("heir", "Heir", "the next site by name", all.filter((n) => n !== d.fields["site"]), "Another member, which takes over what the site holds.")
      )}
    </>
  );
}

/** What the dry run says, the button for the change, and what came of it. */
function Outcome({ p, d, name, request }: { p: Shown; d: Draft; name: string; request: Request | FieldProblem[] }): JSX.Element {
  const go = (): void => {
    const now = current(p.store.state, name);
    if (now !== null && !Array.isArray(now.request) && mayApply(now.draft, now.request)) {
      void apply(p.store, now.request).then(() => reread(p, name));
    }
  };
  return (
    <section class="card outcome" aria-labelledby="outcome-title" aria-live="polite">
      <h2 id="outcome-title">{d.done !== null ? "Done" : d.tried !== null ? "The change would do this" : "Effects"}</h2>
      {d.problem !== null && (
        <ProblemBox problem={d.problem}>
          {outcomeOpen(d.problem) && d.tried !== null && <p>The change may have been made. Repeating it is safe: the repeat has the same request id.</p>}
        </ProblemBox>
      )}
      {d.tried === null && d.problem === null && <p class="empty">A dry run comes first. It shows here what the change would do.</p>}
      {d.done === null && d.tried !== null && <Effects of={d.tried.answer} />}
      {d.done === null && mayApply(d, request) && (
        <div class="buttons">
          <button type="button" class="primary" onClick={go}>
            {d.problem !== null && outcomeOpen(d.problem) ? "Repeat the change" : names[d.action]}
          </button>
          <span class="note">goes to the audit log {p.s.caller?.name === undefined || p.s.caller.name === "" ? "without a name: no sign-in here" : `as ${p.s.caller.name}`}</span>
        </div>
      )}
      {d.busy === "change" && <p class="empty">Making the change …</p>}
      {d.done !== null && <Done d={d} a={d.done} />}
    </section>
  );
}

function Effects({ of }: { of: Changed }): JSX.Element {
  const r: DryRun | undefined = of.dry_run;
  if (r === undefined) {
    return <p>The change would be made; the app manager tells no more.</p>;
  }
  return (
    <>
      <ul class="effects">
        {r.effects.map((e) => (
          <li key={e}>{e}</li>
        ))}
      </ul>
      {r.tokens_short > 0 && (
        <p>
          <Status kind="warn">
            {counted(r.tokens_short, "token")} more than the new limit are out. No tokens are granted until {counted(r.releases_needed, "token")} came back.
          </Status>
        </p>
      )}
      {!r.complete && (
        <p>
          <Status kind="warn">Some sites did not answer: the effects there are not known.</Status>
        </p>
      )}
      {r.sites.length > 0 && (
        <Scroll label="Effects by site">
          <table>
            <caption class="visually-hidden">Tokens left at each site before and after, estimated</caption>
            <thead>
              <tr>
                <th scope="col">Site</th>
                <th scope="col" class="number">Left now <span class="unit">tokens</span></th>
                <th scope="col" class="number">After <span class="unit">estimate</span></th>
                <th scope="col" class="number">Change</th>
              </tr>
            </thead>
            <tbody>
              {r.sites.map((x) => (
                <tr key={x.site}>
                  <th scope="row">{x.site}</th>
                  <td class="number">{count(x.left_before)}</td>
                  <td class="number">{count(x.left_after)}</td>
                  <td class="number">{x.left_after > x.left_before ? "+" : ""}{count(x.left_after - x.left_before)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </>
  );
}

function Done({ d, a }: { d: Draft; a: Changed }): JSX.Element {
  const name = a.name ?? "";
  return (
    <>
      <p>
        <Status kind="ok">
          {d.action === "create" && <>{name} is there, with a limit of {counted(a.limit ?? 0, "token")}.</>}
          {d.action === "limit" && <>The limit of {name} is {counted(a.limit ?? 0, "token")}, version {a.version ?? unknown}.</>}
          {d.action === "drain" && <>{d.fields["site"]} is {a.member?.state ?? "draining"}.</>}
        </Status>
      </p>
      {(a.may_exceed_by ?? 0) > 0 && <p><Status kind="warn">Up to {counted(a.may_exceed_by ?? 0, "token")} beyond the limit may be out for now.</Status></p>}
      {(a.missing_sites ?? []).length > 0 && <p><Status kind="warn">Not yet applied at {(a.missing_sites ?? []).join(", ")}.</Status></p>}
      <p>
        {d.action === "drain" ? <Link to={{ page: "cluster" }}>See the cluster</Link> : <Link to={{ page: "entity", name }}>See {name}</Link>}
      </p>
    </>
  );
}
