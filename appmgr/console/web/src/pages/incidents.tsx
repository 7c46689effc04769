import { type JSX } from "preact";

import { type Finding } from "../model/api.js";
import { clock, counted, span } from "../model/format.js";
import { grouped } from "../model/findings.js";
import { type Shown } from "../ui/context.js";
import { type Kind, Link, Scroll, Section, Stale, Status } from "../ui/parts.js";

const kinds: Record<string, Kind> = { critical: "bad", warning: "warn", notice: "idle", healthy: "ok" };
const states: Record<string, Kind> = { answers: "ok", silent: "bad", refuses: "warn", unknown: "idle" };

export function IncidentsPage({ s }: Shown): JSX.Element {
  const r = s.doctor.value;
  return (
    <>
      <h1>
        Incidents{" "}
        {r !== null && (
          <span class="headline">
            <Status kind={kinds[r.verdict] ?? "idle"}>{r.verdict === "healthy" ? "the cluster is healthy" : `the verdict is ${r.verdict}`}</Status>
          </span>
        )}
      </h1>
      <Stale feed={s.doctor} now={s.now} what="findings" />
      {r === null && s.doctor.problem === null && <p class="empty">The doctor looks at all processes, for some seconds …</p>}
      {r !== null && (
        <>
          <p class="note">
            The doctor looked at {clock(r.at_ms ?? s.doctor.at)}; it looks again every few seconds while this page is open.
            {r.left_off > 0 && ` ${counted(r.left_off, "further finding")} of the same kinds are left out.`}
          </p>
          {r.findings.length === 0 && <p class="empty">Nothing is wrong as far as can be told.</p>}
          <ol class="findings">
            {grouped(r.findings).map((g) => (
              <li key={g[0]?.id}>
                <FindingCard all={g} />
              </li>
            ))}
          </ol>
          <Section title="Processes" id="processes-title" note="Which processes the doctor looked at.">
            <Scroll label="Processes">
              <table>
                <caption class="visually-hidden">Processes that the doctor looked at</caption>
                <thead>
                  <tr>
                    <th scope="col">Process</th>
                    <th scope="col">Kind</th>
                    <th scope="col">Region</th>
                    <th scope="col">State</th>
                    <th scope="col">Address</th>
                  </tr>
                </thead>
                <tbody>
                  {(r.processes ?? []).map((x) => (
                    <tr key={`${x.job} ${x.name} ${x.instance}`}>
                      <th scope="row">{x.name}</th>
                      <td>{x.job === "samya-site" ? "site" : "app manager"}</td>
                      <td>{x.region}</td>
                      <td>
                        <Status kind={states[x.state] ?? "idle"}>
                          {x.state}
                          {x.problem !== undefined && x.problem !== "" && `: ${x.problem}`}
                        </Status>
                      </td>
                      <td>{x.instance}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
          </Section>
          <Rules rules={r.rules ?? []} />
        </>
      )}
    </>
  );
}

/** The findings of one kind, about the subjects of each. */
function FindingCard({ all }: { all: Finding[] }): JSX.Element | null {
  const f = all[0];
  if (f === undefined) {
    return null;
  }
  return (
    <article class={`card finding ${f.severity}`}>
      <h2>
        <Status kind={kinds[f.severity] ?? "idle"}>
          <span class="severity">{f.severity}</span> {all.length === 1 ? <Summary f={f} /> : `${counted(all.length, "finding")} of the same kind`}
        </Status>
      </h2>
      {all.length > 1 && (
        <ul class="subjects">
          {all.map((x, i) => (
            <li key={i}>
              <Summary f={x} />
              <Seen f={x} />
            </li>
          ))}
        </ul>
      )}
      <dl>
        {all.length === 1 && f.where !== undefined && f.where !== "" && (
          <div>
            <dt>Where</dt>
            <dd>{f.where}</dd>
          </div>
        )}
        <div>
          <dt>Means</dt>
          <dd>{f.means}</dd>
        </div>
        <div class="do">
          <dt>Do</dt>
          <dd>{f.do}</dd>
        </div>
      </dl>
      <p class="note">
        <a href={f.runbook} target="_blank" rel="noreferrer">
          Runbook {f.id}
        </a>
        {all.length === 1 && <Seen f={f} />}
      </p>
    </article>
  );
}

/** The summary, after the name of the subject, which readers know better than its address. */
function Summary({ f }: { f: Finding }): JSX.Element {
  const { name, entity } = f.labels;
  return (
    <>
      {name !== undefined && <span class="subject">{name}</span>}
      {entity !== undefined && (
        <span class="subject">
          <Link to={{ page: "entity", name: entity }}>{entity}</Link>
        </span>
      )}
      {f.summary}
    </>
  );
}

function Seen({ f }: { f: Finding }): JSX.Element | null {
  return f.value === undefined || f.bound === undefined || f.bound === "" ? null : (
    <span class="label">
      seen {Number(f.value.toPrecision(4))}, alerts at {f.bound}
    </span>
  );
}

function Rules({ rules }: { rules: NonNullable<Shown["s"]["doctor"]["value"]>["rules"] & object }): JSX.Element {
  const judged = rules.filter((r) => r.judged).length;
  return (
    <details class="card">
      <summary>
        {judged} of {counted(rules.length, "rule")} judged
      </summary>
      <p class="note">A rule looks back over a time; the doctor looked for less, so a slow fault may still hide.</p>
      <Scroll label="Rules" class="list-table">
        <table>
          <caption class="visually-hidden">The rules, and for how long each was judged</caption>
          <thead>
            <tr>
              <th scope="col">Rule</th>
              <th scope="col">Judged</th>
              <th scope="col" class="number">Looks back</th>
              <th scope="col" class="number">Looked</th>
            </tr>
          </thead>
          <tbody>
            {rules.map((r) => (
              <tr key={r.id}>
                <th scope="row">{r.id}</th>
                <td>{r.judged ? "yes" : "no figures for it"}</td>
                <td class="number">{span(r.needs_seconds * 1000)}</td>
                <td class="number">{span(r.judged_seconds * 1000)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </details>
  );
}
