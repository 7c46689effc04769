import { type JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

import { type ChartModel, type Line, drawn, summary, tableRows } from "../model/chart.js";
import { clock, count, fineClock, short } from "../model/format.js";
import { Scroll } from "./parts.js";

/** The most rows of a table: five minutes of half seconds. */
const mostRows = 600;

/** The number of colours of the palette in style.css. */
const palette = 8;

function colorOf(el: Element, color: number): string {
  const name = color === -1 ? "--grey" : color === -2 ? "--bad" : `--series-${color % palette}`;
  return getComputedStyle(el).getPropertyValue(name).trim();
}

export const colorClass = (color: number): string => (color === -1 ? "c-grey" : color === -2 ? "c-bad" : `c${color % palette}`);

function seriesOf(el: Element, line: Line): uPlot.Series {
  const color = colorOf(el, line.color);
  const base: uPlot.Series = { label: line.label, stroke: color, width: 1.5, points: { show: false }, spanGaps: false };
  switch (line.look) {
    case "dashes":
      return { ...base, dash: [5, 4] };
    case "low":
    case "high":
      return { ...base, width: 0 };
    case "area":
    case "line":
      return base;
  }
}

function bandsOf(el: Element, m: ChartModel): uPlot.Band[] {
  const bands: uPlot.Band[] = [];
  const areas = m.lines.map((l, i) => (l.look === "area" ? i + 1 : 0)).filter((i) => i > 0);
  areas.forEach((s, k) => {
    const below = areas[k - 1];
    if (m.stacked && below !== undefined) {
      bands.push({ series: [s, below], fill: `${colorOf(el, m.lines[s - 1]?.color ?? 0)}55` });
    }
  });
  const [low, high] = [m.lines.findIndex((l) => l.look === "low") + 1, m.lines.findIndex((l) => l.look === "high") + 1];
  if (low > 0 && high > 0) {
    bands.push({ series: [high, low], fill: `${colorOf(el, m.lines[high - 1]?.color ?? 0)}38` });
  }
  return bands;
}

function optionsOf(el: HTMLElement, m: ChartModel, height: number, range: () => [number, number], time: () => [number, number], hover: (i: number | null) => void): uPlot.Options {
  const css = getComputedStyle(el);
  const [ink, rule] = [css.getPropertyValue("--ink-2").trim(), css.getPropertyValue("--rule").trim()];
  const font = `11px ${css.getPropertyValue("--font").trim()}`;
  const axis: uPlot.Axis = { stroke: ink, font, grid: { stroke: rule, width: 1 }, ticks: { show: false } };
  const firstArea = m.stacked ? m.lines.findIndex((l) => l.look === "area") : -1;
  return {
    width: Math.max(120, el.clientWidth),
    height,
    padding: [8, 28, 0, 0],
    legend: { show: false },
    cursor: { points: { show: false }, drag: { x: false, y: false }, y: false },
    scales: { x: { time: true, range: time }, y: { range } },
    series: [{}, ...m.lines.map((l, i) => (i === firstArea ? { ...seriesOf(el, l), fill: `${colorOf(el, l.color)}55` } : seriesOf(el, l)))],
    bands: bandsOf(el, m),
    axes: [
      { ...axis, size: 24, space: 70, values: (_u, ticks) => ticks.map((t) => clock(t * 1000)) },
      { ...axis, size: 52, space: 28, values: (_u, ticks) => ticks.map((t) => short(t)) },
    ],
    hooks: { setCursor: [(u) => hover(u.cursor.idx ?? null)] },
  };
}

interface Props {
  model: ChartModel;
  height?: number;
  /** Draws anew if this changes: the theme. */
  look: string;
  show?: (n: number | null) => string;
  /** The time whose figures the legend has; default: the last. */
  latest?: number;
  /** Leaves the title to the section around the chart. */
  bare?: boolean;
}

/** A chart, its legend with the latest figures or those under the pointer, and its table. */
export function Chart({ model, height = 180, look, show = count, bare = false, latest }: Props): JSX.Element {
  const [asTable, setAsTable] = useState(false);
  const [under, setUnder] = useState<number | null>(null);
  const hidden = model.lines.length === 0 || model.at.length < 2;
  const rows = model.at.length;
  const after = latest === undefined ? -1 : model.at.findIndex((t) => t > latest + 500);
  const at = after > 0 ? after - 1 : rows - 1;
  const { data } = useMemo(() => drawn(model), [model]);
  const offset = rows - data[0].length;
  const index = under !== null ? Math.min(rows - 1, under + offset) : at;
  return (
    <figure class="chart">
      <figcaption>
        <span class={bare ? "visually-hidden" : "chart-title"}>{model.title}</span>
        <span class="unit">{model.unit}</span>
        <button type="button" class="plain" aria-pressed={asTable} onClick={() => setAsTable(!asTable)} aria-label={`${asTable ? "Chart" : "Table"} of ${model.title}`}>
          {asTable ? "Chart" : "Table"}
        </button>
      </figcaption>
      {asTable ? (
        <Scroll label={`Figures of ${model.title}`} class="chart-table">
          <ChartTable model={model} show={show} />
        </Scroll>
      ) : hidden ? (
        <p class="empty chart-empty">No figures yet.</p>
      ) : (
        <Drawing model={model} height={height} look={look} hover={setUnder} label={summary(model, show)} />
      )}
      {!asTable && <Legend model={model} index={index} show={show} pointed={under !== null} />}
    </figure>
  );
}

/** The lines with their figures: the latest, or those under the pointer. Areas stand as they are stacked. */
function Legend({ model, index, show, pointed }: { model: ChartModel; index: number; show: (n: number | null) => string; pointed: boolean }): JSX.Element {
  const ahead = (l: Line): boolean => l.ahead !== undefined && !pointed;
  const value = (l: Line): string => show((ahead(l) ? l.values.at(-1) : l.values[index]) ?? null);
  const [low, high] = [model.lines.find((l) => l.look === "low"), model.lines.find((l) => l.look === "high")];
  const items = model.lines
    .filter((l) => l.look !== "low" && l.look !== "high")
    .map((l) => (
      <li key={l.label}>
        <span class={`swatch ${l.look} ${colorClass(l.color)}`} />
        {l.label} {ahead(l) && l.ahead} <b>{value(l)}</b>
      </li>
    ));
  return (
    <ul class="legend" aria-label={`Legend of ${model.title}`}>
      {model.stacked ? items.reverse() : items}
      {low !== undefined && high !== undefined && (
        <li>
          <span class={`swatch high ${colorClass(high.color)}`} />
          peak {ahead(low) && "until then"} <b>{`${value(low)} to ${value(high)}`}</b>
        </li>
      )}
      {pointed && <li class="at">at {clock(model.at[index] ?? 0)}</li>}
    </ul>
  );
}

function Drawing(p: { model: ChartModel; height: number; look: string; hover: (i: number | null) => void; label: string }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const now = useRef(drawn(p.model));
  now.current = drawn(p.model);
  const kind = p.model.lines.map((l) => `${l.label}/${l.look}/${l.color}`).join();
  useEffect(() => {
    const el = box.current;
    if (el === null) {
      return undefined;
    }
    const o = optionsOf(el, p.model, p.height, () => now.current.range, () => [now.current.from, now.current.to], p.hover);
    const u = new uPlot(o, now.current.data, el);
    plot.current = u;
    const resize = new ResizeObserver(() => u.setSize({ width: Math.max(120, el.clientWidth), height: p.height }));
    resize.observe(el);
    return () => {
      resize.disconnect();
      u.destroy();
      plot.current = null;
    };
  }, [kind, p.look, p.height]);
  useEffect(() => {
    plot.current?.setData(now.current.data);
  }, [p.model]);
  return <div class={`plot high-${p.height}`} ref={box} role="img" aria-label={p.label} />;
}

function ChartTable({ model, show }: { model: ChartModel; show: (n: number | null) => string }): JSX.Element {
  const time = model.at.some((t, i) => i > 0 && t - (model.at[i - 1] ?? 0) < 1000) ? fineClock : clock;
  return (
    <table>
      <caption class="visually-hidden">
        {model.title}, {model.unit}, newest first
      </caption>
      <thead>
        <tr>
          <th scope="col">Time</th>
          {model.lines.map((l) => (
            <th key={l.label} scope="col" class="number">
              {l.label} <span class="unit">{model.unit}</span>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {tableRows(model, mostRows).map((r) => (
          <tr key={r.at}>
            <th scope="row">{time(r.at)}</th>
            {r.values.map((v, i) => (
              <td key={i} class="number">
                {show(v)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
