import { type JSX } from "preact";
import { useState } from "preact/hooks";

import { type EntityStatus, type Share } from "../model/api.js";
import { type Outlook, outlook, totals } from "../model/activity.js";
import { type ChartModel, type Line, until } from "../model/chart.js";
import { clock, count, counted, moment, percent, short, span, unknown } from "../model/format.js";
import { type EntityView } from "../model/state.js";
import { Chart } from "../ui/chart.js";
import { type Shown, mayChange } from "../ui/context.js";
import { Flow, flowWindow } from "../ui/flow.js";
import { Facts, type Fact, Link, ProblemBox, Scroll, Section, Stale, Status } from "../ui/parts.js";
import { TreeView } from "../ui/treeview.js";

const window = 120_000;

export function EntityPage(p: Shown): JSX.Element {
  const v = p.s.entity;
  if (v === null || v.name === "") {
    return <h1>No entity is named in the address</h1>;
  }
  const e = v.status.value;
  if (e === null) {
    return (
      <>
        <h1>{v.name}</h1>
        {v.status.problem === null ? <p class="empty">Asking all sites …</p> : <ProblemBox problem={v.status.problem} />}
      </>
    );
  }
  return (
    <>
      <Title p={p} v={v} e={e} />
      {v.deleted ? <p class="stale"><Status kind="bad">This entity was deleted. The figures are its last.</Status></p> : <Stale feed={v.status} now={p.s.now} what={`the figures of ${v.name}`} />}
      <Facts label={`${v.name} at a glance`} facts={facts(e)} />
      <Whole p={p} e={e} />
      <div class="columns">
        <Section title="Shares" id="shares-title" note="The tokens of each site.">
          <ShareTable p={p} e={e} />
        </Section>
        <Moves p={p} v={v} e={e} />
      </div>
      <Section title="Share of each site over time" id="time-title" note="Tokens left at the sites, one on top of the other, as watched.">
        <Chart model={shareChart(p, v)} look={p.look} bare />
      </Section>
      <Demand p={p} v={v} />
      <Section title="Waits and refusals" id="waits-title" note="All sites together.">
        <Stale feed={v.activity} now={p.s.now} what="the recent activity" />
        <div class="multiples two">
          {v.activity.at > 0 && waitCharts(v).map((m) => <Chart key={m.title} model={m} look={p.look} height={130} />)}
        </div>
      </Section>
      <div class="columns">
        <LeaseTable p={p} v={v} />
        <HistoryTable p={p} v={v} />
      </div>
      {((e.children ?? 0) > 0 || e.parent !== undefined) && <Hierarchy p={p} v={v} e={e} />}
    </>
  );
}

function Title({ p, v, e }: { p: Shown; v: EntityView; e: EntityStatus }): JSX.Element {
  const above = [...v.above].reverse();
  return (
    <div class="title-row">
      <div>
        {above.length > 0 && (
          <nav aria-label="Entities above" class="crumbs">
            <ol>
              {above.map((a) => (
                <li key={a.name}>
                  <Link to={{ page: "entity", name: a.name }}>{a.name}</Link>
                </li>
              ))}
            </ol>
          </nav>
        )}
        <h1>
          {v.name} <span class="headline">{headline(e)}</span>
        </h1>
      </div>
      {mayChange(p.s) && !v.deleted && (
        <Link class="button" to={{ page: "admin", action: "limit", name: v.name }}>
          Change the limit
        </Link>
      )}
    </div>
  );
}

/** The answer in a sentence. */
function headline(e: EntityStatus): JSX.Element {
  if (e.debt > 0) {
    return <Status kind="bad">{counted(e.debt, "token")} beyond the limit are out</Status>;
  }
  const waiting = e.shares.reduce((a, s) => a + (s.waiting ?? 0), 0);
  if (e.available === 0) {
    return <Status kind="bad">no tokens are left{waiting > 0 && `, ${counted(waiting, "acquire")} wait`}</Status>;
  }
  if (waiting > 0) {
    return <Status kind="warn">{counted(waiting, "acquire")} wait for tokens</Status>;
  }
  return <Status kind={e.available * 10 < e.limit ? "warn" : "ok"}>{percent(e.available, e.limit)} of the limit is left</Status>;
}

function facts(e: EntityStatus): Fact[] {
  const waiting = e.shares.reduce((a, s) => a + (s.waiting ?? 0), 0);
  const all: Fact[] = [
    { name: e.per === undefined ? "Limit" : `Limit per ${e.per}`, value: count(e.limit), unit: "tokens" },
    { name: "Out", value: count(e.acquired), unit: percent(e.acquired, e.limit) },
    { name: "Left", value: count(e.available), unit: percent(e.available, e.limit) },
    ...(e.in_transit === null ? [] : [{ name: "On the way", value: count(e.in_transit), unit: "tokens" }]),
    { name: "Waiting", value: count(waiting), unit: "acquires", ...(waiting > 0 ? { kind: "warn" as const } : {}) },
    { name: "Version", value: count(e.version) },
  ];
  const bad: [string, number][] = [["Debt", e.debt], ["May exceed by", e.may_exceed_by], ["Surplus", e.surplus], ["Written off", e.written_off]];
  for (const [name, value] of bad) {
    if (value > 0) {
      all.push({ name, value: count(value), unit: "tokens", kind: "warn" });
    }
  }
  if (e.kind !== undefined) {
    all.push({ name: "Kind", value: e.kind });
  }
  return all;
}

/** The limit as a bar: what is out, what each site has left, what is on the way. */
function Whole({ p, e }: { p: Shown; e: EntityStatus }): JSX.Element {
  const parts: { label: string; tokens: number; color: string }[] = [
    { label: "out", tokens: Math.max(0, e.acquired), color: "out" },
    ...e.shares.map((s) => ({ label: s.site, tokens: Math.max(0, s.left ?? 0), color: `c${p.colorOf(s.site) % 8}` })),
    { label: "on the way", tokens: Math.max(0, e.in_transit ?? 0), color: "way" },
  ].filter((x) => x.tokens > 0);
  const all = Math.max(e.limit, parts.reduce((a, x) => a + x.tokens, 0), 1);
  let x = 0;
  return (
    <figure class="whole-bar">
      <svg viewBox="0 0 1000 26" preserveAspectRatio="none" role="img" aria-label={`Of the limit of ${count(e.limit)} tokens: ${parts.map((q) => `${q.label} ${count(q.tokens)}`).join(", ")}`}>
        <rect class="rest" width="1000" height="26" />
        {parts.map((q) => {
          const [from, wide] = [x, (1000 * q.tokens) / all];
          x += wide;
          return <rect key={q.label} class={q.color} x={from} width={Math.max(0.5, wide - 1.5)} height="26" />;
        })}
      </svg>
      <figcaption class="legend">
        {parts.map((q) => (
          <span key={q.label}>
            <span class={`swatch block ${q.color}`} /> {q.label} <b>{count(q.tokens)}</b>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function ShareTable({ p, e }: { p: Shown; e: EntityStatus }): JSX.Element {
  const left = e.shares.reduce((a, s) => a + (s.left ?? 0), 0);
  const age = (s: Share): string => (s.age_ms === null ? unknown : s.age_ms < 1000 ? "now" : `${span(s.age_ms)} ago`);
  return (
    <Scroll label={`Shares of ${e.name}`}>
      <table>
        <caption class="visually-hidden">The share of each site, in tokens</caption>
        <thead>
          <tr>
            <th scope="col">Site</th>
            <th scope="col" class="number">Left</th>
            <th scope="col" class="number">Part</th>
            <th scope="col" class="number">Set aside</th>
            <th scope="col" class="number">Out <span class="unit">net</span></th>
            <th scope="col" class="number">Waiting</th>
            <th scope="col" class="number">Told</th>
          </tr>
        </thead>
        <tbody>
          {e.shares.map((s) => (
            <tr key={s.site}>
              <th scope="row">
                <span class={`swatch block c${p.colorOf(s.site) % 8}`} /> {s.site}
              </th>
              <td class="number">{count(s.left)}</td>
              <td class="number">{s.left === null ? unknown : percent(s.left, left)}</td>
              <td class="number">{count(s.offered)}</td>
              <td class="number">{count(s.net)}</td>
              <td class="number">{count(s.waiting)}</td>
              <td class="number">{age(s)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Moves({ p, v, e }: { p: Shown; v: EntityView; e: EntityStatus }): JSX.Element {
  const [asTable, setAsTable] = useState(false);
  const { moves, skew } = v.recent;
  return (
    <Section
      title="Tokens moving"
      id="moves-title"
      note={`Between sites, in the last ${flowWindow / 1000} seconds.`}
      tools={
        <button type="button" class="plain" aria-pressed={asTable} onClick={() => setAsTable(!asTable)} aria-label={`${asTable ? "Graph" : "Table"} of moves`}>
          {asTable ? "Graph" : "Table"}
        </button>
      }
    >
      <Stale feed={v.activity} now={p.s.now} what="the moves of tokens" />
      {asTable ? (
        <Scroll label="Moves of tokens" class="chart-table">
          <table>
            <caption class="visually-hidden">Moves of tokens between sites, newest first</caption>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">From</th>
                <th scope="col">To</th>
                <th scope="col" class="number">Tokens</th>
                <th scope="col">By</th>
              </tr>
            </thead>
            <tbody>
              {moves.map((m, i) => (
                <tr key={i}>
                  <th scope="row">{clock(m.at_ms + skew)}</th>
                  <td>{m.from || "all sites"}</td>
                  <td>{m.to || "all sites"}</td>
                  <td class="number">{count(m.tokens)}</td>
                  <td>{m.by}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {moves.length === 0 && <p class="empty">No move is known.</p>}
        </Scroll>
      ) : (
        <Flow places={p.s.picture.places} shares={e.shares} recent={v.recent} now={p.s.now} colorOf={p.colorOf} />
      )}
    </Section>
  );
}

function shareChart(p: Shown, v: EntityView): ChartModel {
  const sites = Object.keys(v.shares.columns).sort();
  const model: ChartModel = {
    title: `Tokens of ${v.name} left at each site`,
    unit: "tokens",
    at: v.shares.at,
    lines: sites.map((site) => ({ label: site, values: v.shares.columns[site] ?? [], color: p.colorOf(site), look: "area" })),
    stacked: true,
    window,
  };
  return v.status.staleSince === null && !v.deleted ? until(model, p.s.now) : model;
}

/** The tokens out through each site, and the band of their forecast. */
function Demand({ p, v }: { p: Shown; v: EntityView }): JSX.Element {
  const sites = Object.keys(v.recent.points).filter((x) => (v.recent.points[x] ?? []).length > 0).sort();
  const all = sites.map((site) => ({ site, o: outlook(v.recent, site) }));
  const horizon = Math.max(0, ...all.map((x) => x.o.horizon));
  const note =
    horizon === 0
      ? "Tokens out through each site."
      : `Tokens out through each site, and what the site forecast ${span(horizon)} before: the tokens out then (dashes), and the peak until then (band), which is below the lower edge in half of all cases and below the upper edge in 19 of 20.`;
  return (
    <Section title="Demand and its forecast" id="demand-title" note={note}>
      <Stale feed={v.activity} now={p.s.now} what="demand and forecasts" />
      {v.activity.at > 0 && sites.length === 0 && <p class="empty">The sites gather figures from now on, one a second.</p>}
      <div class="multiples">
        {all.map(({ site, o }) => (
          <Chart key={site} model={demandChart(p, v, site, o)} look={p.look} height={110} show={short} latest={(v.recent.points[site]?.at(-1)?.at_ms ?? 0) + v.recent.skew} />
        ))}
      </div>
    </Section>
  );
}

function demandChart(p: Shown, v: EntityView, site: string, o: Outlook): ChartModel {
  const color = p.colorOf(site);
  const model = v.recent.models[site] ?? "";
  const ahead = `in ${span(o.horizon)}`;
  const forecast: Line[] =
    o.horizon === 0
      ? []
      : [
          { label: "peak, lower edge", values: o.low, color, look: "low", ahead },
          { label: "peak, upper edge", values: o.high, color, look: "high", ahead },
        ];
  return {
    title: model === "" ? site : `${site}, by ${model}`,
    unit: "tokens out",
    at: o.at,
    lines: [...forecast, { label: "out", values: o.net, color: -1, look: "line" }, ...(o.horizon === 0 ? [] : [{ label: "expected", values: o.expected, color, look: "dashes", ahead } as const])],
    stacked: false,
    window,
  };
}

/** Granted and refused tokens, and acquires that wait: two units, so two charts. */
function waitCharts(v: EntityView): ChartModel[] {
  const t = totals(v.recent);
  const shared = { at: t.at, stacked: false, window };
  return [
    {
      ...shared,
      title: "Granted and refused",
      unit: "tokens per second",
      lines: [
        { label: "granted", values: t.granted, color: 0, look: "line" },
        { label: "refused", values: t.refused, color: -2, look: "dashes" },
      ],
    },
    { ...shared, title: "Waiting", unit: "acquires", lines: [{ label: "in the queues", values: t.waiting, color: 3, look: "line" }] },
  ];
}

function LeaseTable({ p, v }: { p: Shown; v: EntityView }): JSX.Element {
  const l = v.leases.value;
  const passed = p.s.now - v.leases.at;
  return (
    <Section title="Leases" id="leases-title" note={l === null ? "" : `${counted(l.leases.length, "lease")}${l.next_page_token === "" ? "" : " of more"}`}>
      <Stale feed={v.leases} now={p.s.now} what="the leases" />
      {l !== null && l.missing.length > 0 && <p class="stale"><Status kind="warn">Without the leases of {l.missing.join(", ")}.</Status></p>}
      {l !== null && l.leases.length === 0 && <p class="empty">No tokens are leased.</p>}
      {l !== null && l.leases.length > 0 && (
        <Scroll label="Leases" class="list-table">
          <table>
            <caption class="visually-hidden">Leases of {v.name}</caption>
            <thead>
              <tr>
                <th scope="col">Lease</th>
                <th scope="col">Holder</th>
                <th scope="col" class="number">Tokens</th>
                <th scope="col" class="number">Ends in</th>
              </tr>
            </thead>
            <tbody>
              {l.leases.map((x) => (
                <tr key={x.name}>
                  <th scope="row" class="long">{x.name}</th>
                  <td class="long">{x.holder || unknown}</td>
                  <td class="number">{count(x.tokens)}</td>
                  <td class="number">{span(x.remaining_ms - passed)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Section>
  );
}

function HistoryTable({ p, v }: { p: Shown; v: EntityView }): JSX.Element {
  const h = v.history.value;
  return (
    <Section title="History of the limit" id="history-title" note="Newest first.">
      <Stale feed={v.history} now={p.s.now} what="the history" />
      {h !== null && h.changes.length === 0 && <p class="empty">No change is known.</p>}
      {h !== null && h.changes.length > 0 && (
        <Scroll label="History of the limit" class="list-table">
          <table>
            <caption class="visually-hidden">Changes of the limit of {v.name}, newest first</caption>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Change</th>
                <th scope="col" class="number">From</th>
                <th scope="col" class="number">To</th>
                <th scope="col">By</th>
                <th scope="col">At</th>
              </tr>
            </thead>
            <tbody>
              {h.changes.map((c, i) => (
                <tr key={i}>
                  <th scope="row">{moment(c.at_ms)}</th>
                  <td>{c.kind}</td>
                  <td class="number">{c.kind === "create" ? unknown : count(c.old_limit)}</td>
                  <td class="number">{count(c.new_limit)}</td>
                  <td>{c.caller || "a caller without a name"}</td>
                  <td>{c.site || unknown}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {h !== null && h.missing_sites.length > 0 && (
        <p class="stale">
          <Status kind="warn">Without the changes that {h.missing_sites.join(" and ")} did.</Status>
        </p>
      )}
      {h !== null && h.changes.length > 0 && <p class="note">Each site remembers the last 16 changes that it was asked for. The audit log has all.</p>}
    </Section>
  );
}

function Hierarchy({ p, v, e }: { p: Shown; v: EntityView; e: EntityStatus }): JSX.Element {
  const turn = (child: string, open: boolean): void => {
    p.store.dispatch({ type: "entity/turn", name: v.name, child, open });
    if (open && v.tree.branches[child] === undefined) {
      void p.pages.children(v.name, child, "");
    }
  };
  return (
    <Section title="Hierarchy" id="tree-title" note="Arrow keys walk the tree, Enter opens an entity. An acquire also takes tokens of all entities above.">
      {v.above.length > 0 && (
        <p class="note">
          Below {v.above.map((a, i) => (
            <span key={a.name}>
              {i > 0 && ", which is below "}
              <Link to={{ page: "entity", name: a.name }}>{a.name}</Link> ({p.s.entity?.usage[a.name] === undefined ? `limit ${count(a.limit)}` : `${count(p.s.entity.usage[a.name]?.acquired)} of ${count(a.limit)} out`})
            </span>
          ))}
        </p>
      )}
      <TreeView tree={v.tree} current={v.name} usage={{ ...v.usage, [v.name]: e }} turn={turn} more={(parent, next) => void p.pages.children(v.name, parent, next)} go={p.go} />
    </Section>
  );
}
