import { type JSX } from "preact";
import { useState } from "preact/hooks";

import { type Member, type Site, type Survey, type Surveyed } from "../model/api.js";
import { type ChartModel, until } from "../model/chart.js";
import { count, counted, latency, percent, rate, short, span, unknown } from "../model/format.js";
import { sum } from "../model/rates.js";
import { Chart } from "../ui/chart.js";
import { type Shown } from "../ui/context.js";
import { Graph, between } from "../ui/graph.js";
import { Facts, type Fact, Scroll, Section, Stale, Status, siteKind, siteWords } from "../ui/parts.js";

interface Row {
  name: string;
  site: Site | undefined;
  member: Member | undefined;
  told: Surveyed | undefined;
}

/** All sites that anything is known of, by name; those that left stand last. */
function rowsOf({ s }: Shown): Row[] {
  const names = new Set([...(s.sites.value?.sites ?? []).map((x) => x.name), ...(s.members.value?.members ?? []).map((m) => m.name)]);
  const rows = [...names].sort().map((name) => ({
    name,
    site: s.sites.value?.sites.find((x) => x.name === name),
    member: s.members.value?.members.find((m) => m.name === name),
    told: s.survey.value?.sites.find((x) => x.site === name && x.known),
  }));
  const left = (r: Row): number => (r.member?.state === "gone" || r.member?.state === "lost" ? 1 : 0);
  return rows.sort((a, b) => left(a) - left(b));
}

const healthOf = (r: Row): string => r.member?.health ?? r.site?.health ?? "unknown";

export function ClusterPage(p: Shown): JSX.Element {
  const { s } = p;
  const rows = rowsOf(p);
  const present = rows.filter((r) => r.member?.state !== "gone" && r.member?.state !== "lost");
  const nodes = present.map((r) => ({
    name: r.name,
    region: r.member?.region ?? r.site?.region ?? r.name,
    kind: siteKind(r.member?.state, healthOf(r)),
    words: siteWords(r.member?.state, healthOf(r)),
    holds: r.told === undefined ? "" : `${short(r.told.tokens_left)} tokens`,
    color: p.colorOf(r.name),
  }));
  return (
    <>
      <h1>
        Cluster {s.caller?.cluster ?? s.sites.value?.cluster ?? ""} <span class="headline">{headline(present)}</span>
      </h1>
      <Stale feed={s.sites} now={s.now} what="the list of sites" />
      <Facts label="The cluster at a glance" facts={facts(p, present)} />
      <div class="columns wide-left">
        <Map p={p} nodes={nodes} />
        <Changes p={p} rows={rows} />
      </div>
      <Section title="Sites" id="sites-title" note="Tokens are of entities without a parent; rates are over the last two seconds.">
        <Stale feed={s.survey} now={s.now} what="what the sites hold" />
        <SiteTable p={p} rows={rows} />
      </Section>
      <Section title="Acquires" id="acquires-title" note="Tokens leave a site by acquires; a site without enough tokens refuses.">
        <Chart model={rateChart(p, present)} look={p.look} show={rate} bare />
      </Section>
    </>
  );
}

/** The answer in a sentence. */
function headline(rows: Row[]): JSX.Element {
  const serving = rows.filter((r) => healthOf(r) === "serving").length;
  const bad = rows.filter((r) => healthOf(r) !== "serving");
  if (rows.length === 0) {
    return <>is being asked …</>;
  }
  const moving = rows.filter((r) => r.member?.state === "joining" || r.member?.state === "draining");
  return bad.length === 0 ? (
    <Status kind={moving.length > 0 ? "busy" : "ok"}>
      all {counted(serving, "site")} serve{moving.map((r) => `; ${r.name} is ${r.member?.state}`).join("")}
    </Status>
  ) : (
    <Status kind={bad.some((r) => healthOf(r) === "unreachable") ? "bad" : "warn"}>
      {serving} of {counted(rows.length, "site")} serve; {bad.map((r) => `${r.name} is ${siteWords(r.member?.state, healthOf(r))}`).join(", ")}
    </Status>
  );
}

function facts({ s }: Shown, rows: Row[]): Fact[] {
  const told = rows.map((r) => r.told).filter((t) => t !== undefined);
  const rates = rows.map((r) => s.rates[r.name]);
  const [granted, refused] = [sum(rates.map((r) => r?.granted)), sum(rates.map((r) => r?.refused))];
  const serving = rows.filter((r) => healthOf(r) === "serving").length;
  const known = told.length > 0;
  const add = (of: (t: Surveyed) => number): string => (known ? count(told.reduce((a, t) => a + of(t), 0)) : unknown);
  const refusedPart = granted === null || refused === null ? "" : ` (${percent(refused, granted + refused)})`;
  return [
    { name: "Sites serving", value: `${serving} of ${rows.length}`, kind: serving === rows.length ? "ok" : "bad" },
    { name: "Entities", value: known ? count(Math.max(...told.map((t) => t.entities))) : unknown },
    { name: "Tokens out", value: add((t) => t.tokens_out) },
    { name: "Tokens left", value: add((t) => t.tokens_left) },
    { name: "Granted", value: granted === null ? unknown : `${rate(granted)}`, unit: "acquires" },
    { name: "Refused", value: refused === null ? unknown : `${rate(refused)}${refusedPart}`, ...(refused !== null && refused > 0 ? { kind: "warn" as const } : {}) },
    { name: "Waiting", value: add((t) => t.waiting), unit: "acquires" },
    { name: "Leases", value: add((t) => t.leases) },
    { name: "Version", value: s.version.value === null ? unknown : String(s.version.value.version) },
    { name: "Protocol", value: protocolOf(s.mode.value) },
  ];
}

function protocolOf(mode: Shown["s"]["mode"]["value"]): string {
  if (mode === null) {
    return unknown;
  }
  return mode.protocol !== "" ? mode.protocol : ([...new Set(mode.sites.filter((x) => x.known).map((x) => x.protocol))].join(", ") || unknown);
}

function Map({ p, nodes }: { p: Shown; nodes: Parameters<typeof Graph>[0]["nodes"] }): JSX.Element {
  const [asTable, setAsTable] = useState(false);
  const names = nodes.map((n) => n.name);
  return (
    <Section
      title="Round trips between sites"
      id="map-title"
      note="Near sites answer each other fast."
      tools={
        <button type="button" class="plain" aria-pressed={asTable} onClick={() => setAsTable(!asTable)} aria-label={`${asTable ? "Graph" : "Table"} of round trips`}>
          {asTable ? "Graph" : "Table"}
        </button>
      }
    >
      {asTable ? <LatencyTable names={names} survey={p.s.survey.value} /> : <Graph places={p.s.picture.places} nodes={nodes} survey={p.s.survey.value} />}
    </Section>
  );
}

function LatencyTable({ names, survey }: { names: string[]; survey: Survey | null }): JSX.Element {
  return (
    <Scroll label="Round trips between sites">
      <table>
        <caption class="visually-hidden">Round trips between sites, in milliseconds</caption>
        <thead>
          <tr>
            <th scope="col">Site</th>
            {names.map((n) => (
              <th key={n} scope="col" class="number">
                {n}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {names.map((a) => (
            <tr key={a}>
              <th scope="row">{a}</th>
              {names.map((b) => {
                const e = between(survey, a, b);
                return (
                  <td key={b} class="number">
                    {a === b ? unknown : e.connected ? latency(e.ms) : "cut off"}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** Members joining or leaving, and what they wait for. */
function Changes({ p, rows }: { p: Shown; rows: Row[] }): JSX.Element {
  const { s } = p;
  const moving = rows.filter((r) => r.member?.state === "joining" || r.member?.state === "draining");
  const waits = s.members.value?.waits_for ?? "";
  const quiet = moving.length === 0 && waits === "";
  return (
    <Section title="Members" id="members-title" note={s.members.value === null ? "" : `version ${s.members.value.version} of the list, told by ${s.members.value.answered_by}`}>
      <Stale feed={s.members} now={s.now} what="the list of members" />
      {quiet && <p class="empty">No site joins or leaves.</p>}
      {waits !== "" && <p><Status kind="busy">The change waits for {waits}.</Status></p>}
      {moving.map((r) => (
        <div key={r.name} class="change">
          <p>
            <Status kind="busy">
              <strong>{r.name}</strong> is {r.member?.state}
              {r.member?.heir !== undefined && `, heir ${r.member.heir}`}
            </Status>
          </p>
          {r.member?.waits_for !== undefined && r.member.waits_for !== "" && <p>waits for {r.member.waits_for}</p>}
          {r.member?.drain !== undefined && r.member.drain !== null && (
            <p class="note">
              still there: {counted(r.member.drain.entities, "entity", "entities")}, {counted(r.member.drain.tokens, "token")}, {counted(r.member.drain.leases, "lease")}
            </p>
          )}
        </div>
      ))}
      <Versions p={p} />
    </Section>
  );
}

function Versions({ p }: { p: Shown }): JSX.Element {
  const v = p.s.version.value;
  return (
    <>
      <h3>Versions</h3>
      <Stale feed={p.s.version} now={p.s.now} what="the versions" />
      {v !== null && (
        <Scroll label="Versions of the sites">
          <table>
            <caption class="visually-hidden">Builds and versions of the sites; the cluster has version {v.version}</caption>
            <thead>
              <tr>
                <th scope="col">Site</th>
                <th scope="col" class="number">Speaks</th>
                <th scope="col">Build</th>
              </tr>
            </thead>
            <tbody>
              {v.sites.map((x) => (
                <tr key={x.site}>
                  <th scope="row">{x.site}</th>
                  <td class="number">{x.known ? `${x.oldest} to ${x.newest}` : unknown}</td>
                  <td class="long">{x.known ? x.build : (x.problem ?? "does not answer")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </>
  );
}

function SiteTable({ p, rows }: { p: Shown; rows: Row[] }): JSX.Element {
  const { s } = p;
  return (
    <Scroll label="Sites">
      <table>
        <caption class="visually-hidden">The sites, what each holds and how it stands</caption>
        <thead>
          <tr>
            <th scope="col">Site</th>
            <th scope="col">Region</th>
            <th scope="col">State</th>
            <th scope="col" class="number">Round trip <span class="unit">from here</span></th>
            <th scope="col" class="number">Tokens left</th>
            <th scope="col" class="number">Out</th>
            <th scope="col" class="number">Set aside</th>
            <th scope="col" class="number">Granted</th>
            <th scope="col" class="number">Refused</th>
            <th scope="col" class="number">Waiting</th>
            <th scope="col" class="number">Leases</th>
            <th scope="col" class="number">Up for</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <tr key={r.name}>
              <th scope="row">
                <span class={`swatch line c${p.colorOf(r.name) % 8}`} /> {r.name}
                {r.site?.node !== undefined && <span class="unit"> node {r.site.node}, {counted(r.site.standbys ?? 0, "standby", "standbys")}</span>}
              </th>
              <td>{r.member?.region ?? r.site?.region}</td>
              <td>
                <Status kind={siteKind(r.member?.state, healthOf(r))}>
                  {siteWords(r.member?.state, healthOf(r))}
                  {r.site?.refusal !== undefined && `: ${r.site.refusal}`}
                  {r.told?.waits_for !== undefined && r.told.waits_for !== "" && `, waits for ${r.told.waits_for}`}
                </Status>
              </td>
              <td class="number">{latency(r.site?.round_trip_ms)}</td>
              <td class="number">{count(r.told?.tokens_left)}</td>
              <td class="number">{count(r.told?.tokens_out)}</td>
              <td class="number">{count(r.told?.tokens_offered)}</td>
              <td class="number">{rate(r.told && s.rates[r.name]?.granted)}</td>
              <td class="number">{rate(r.told && s.rates[r.name]?.refused)}</td>
              <td class="number">{count(r.told?.waiting)}</td>
              <td class="number">{count(r.told?.leases)}</td>
              <td class="number">{r.told === undefined ? unknown : span(r.told.up_ms)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function rateChart(p: Shown, rows: Row[]): ChartModel {
  const { s } = p;
  const column = (name: string): readonly (number | null)[] => s.rateSeries.columns[name] ?? [];
  const lines = rows.map((r) => ({ label: r.name, values: column(r.name), color: p.colorOf(r.name), look: "area" as const }));
  const model: ChartModel = {
    title: "Acquires granted, and refused by all sites",
    unit: "acquires per second",
    at: s.rateSeries.at,
    lines: [...lines, { label: "refused", values: column("refused"), color: -2, look: "dashes" }],
    stacked: true,
    window: 300_000,
  };
  return until(model, s.now);
}

