import { type JSX } from "preact";

import { type Share } from "../model/api.js";
import { flows, type Recent } from "../model/activity.js";
import { count, short } from "../model/format.js";
import { type Place, freeSpot, labels } from "../model/graph.js";
import { colorClass } from "./chart.js";
import { at, labelHigh, useSize } from "./graph.js";

/** How far back moves are drawn, and how long a move counts as fresh, in milliseconds. */
export const flowWindow = 10_000;
const fresh = 3_000;

/** The tokens that moved between sites in the last seconds, over the sites' places. */
export function Flow(p: { places: readonly Place[]; shares: readonly Share[]; recent: Recent; now: number; colorOf: (site: string) => number }): JSX.Element {
  const picture = useSize();
  const end = p.now - p.recent.skew;
  const moved = flows(p.recent.moves, end - flowWindow).slice(0, 10);
  const most = Math.max(1, ...p.shares.map((s) => s.left ?? 0));
  const center = at({ name: "", ...freeSpot(p.places) }, picture);
  const where = (site: string): { x: number; y: number } => {
    const place = p.places.find((x) => x.name === site);
    return place === undefined ? center : at(place, picture);
  };
  const pooled = moved.some((m) => m.from === "" || m.to === "");
  const size = (site: string): number => 9 + 19 * Math.sqrt(Math.max(0, p.shares.find((s) => s.site === site)?.left ?? 0) / most);
  const total = moved.reduce((s, m) => s + m.tokens, 0);
  const ways = moved.map((m) => {
    const [a, b] = [where(m.from), where(m.to)];
    const d = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const [ux, uy] = [(b.x - a.x) / d, (b.y - a.y) / d];
    const [sa, sb] = [m.from === "" ? 16 : size(m.from) + 4, m.to === "" ? 18 : size(m.to) + 7];
    const [from, to] = [{ x: a.x + ux * sa, y: a.y + uy * sa }, { x: b.x - ux * sb, y: b.y - uy * sb }];
    // Bent to the right of its way, so that the two directions keep apart.
    const bend = { x: (from.x + to.x) / 2 - uy * 26, y: (from.y + to.y) / 2 + ux * 26 };
    return { from, to, bend, wide: (short(m.tokens).length + 1) * 7.6 + 6 };
  });
  const taken = p.places.map((place) => ({ x: at(place, picture).x, y: at(place, picture).y + 12, wide: 76, high: 2 * size(place.name) + 34 }));
  const texts = labels(ways, labelHigh, pooled ? [...taken, { ...center, wide: 90, high: 60 }] : taken);
  return (
    <svg class="graph flow" viewBox={`0 0 ${picture.width} ${picture.height}`} role="img" aria-label={`Tokens moved in the last ${flowWindow / 1000} seconds: ${count(total)}. The table of moves has each.`}>
      <defs>
        <marker id="tip" viewBox="0 0 8 8" refX="6.5" refY="4" markerWidth="9" markerHeight="9" orient="auto" markerUnits="userSpaceOnUse">
          <path d="M0 0 8 4 0 8z" class="tip" />
        </marker>
      </defs>
      {pooled && (
        <g class="pool">
          <path d={`M${center.x} ${center.y - 13}l13 13-13 13-13-13z`} />
          <text x={center.x} y={center.y + 28}>
            agreed by all
          </text>
        </g>
      )}
      {moved.map((m, i) => {
        const [w, text, age] = [ways[i]!, texts[i]!, end - m.last];
        return (
          <g key={`${m.from}>${m.to}`} class={`move ${age < fresh ? "fresh" : ""} ${age > flowWindow / 2 ? "old" : ""}`}>
            <path d={`M${w.from.x} ${w.from.y}Q${w.bend.x} ${w.bend.y} ${w.to.x} ${w.to.y}`} stroke-width={1.2 + 2.8 * Math.min(1, m.tokens / (most / 2))} marker-end="url(#tip)" />
            <rect x={text.x - w.wide / 2} y={text.y - 9} width={w.wide} height={labelHigh} rx={3} />
            <text x={text.x} y={text.y + 4}>
              +{short(m.tokens)}
            </text>
          </g>
        );
      })}
      {moved.length === 0 && (
        <text x={picture.width / 2} y={picture.height - 8}>
          No tokens moved in the last {flowWindow / 1000} seconds.
        </text>
      )}
      {p.places.map((place) => {
        const { x, y } = at(place, picture);
        const share = p.shares.find((s) => s.site === place.name);
        const r = size(place.name);
        return (
          <g key={place.name} class="node" transform={`translate(${x} ${y})`}>
            <circle class={`disc ${colorClass(p.colorOf(place.name))}`} r={r} />
            <text class="name" y={r + 14}>
              {place.name}
            </text>
            <text class="holds" y={r + 28}>
              {share?.left === null || share === undefined ? "not known" : `${short(share.left)} left`}
            </text>
          </g>
        );
      })}
    </svg>
  );
}
