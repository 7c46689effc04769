import { type JSX } from "preact";

import { type Survey } from "../model/api.js";
import { latency } from "../model/format.js";
import { type Box, type Place, labels } from "../model/graph.js";
import { colorClass } from "./chart.js";
import { type Kind } from "./parts.js";

const [width, height, edge] = [720, 380, 70];

export interface Node {
  name: string;
  kind: Kind;
  words: string;
  /** A line below the name, such as the tokens held. */
  holds: string;
  color: number;
}

export const at = (p: Place): { x: number; y: number } => ({ x: edge + 40 + p.x * (width - 2 * edge - 80), y: edge - 14 + p.y * (height - 2 * edge) });

/** The latency between two sites, the mean of both ends as far as they tell. */
export function between(s: Survey | null, a: string, b: string): { ms: number | null; connected: boolean } {
  const ends = [
    s?.sites.find((x) => x.site === a)?.peers.find((p) => p.site === b),
    s?.sites.find((x) => x.site === b)?.peers.find((p) => p.site === a),
  ].filter((p) => p !== undefined);
  const told = ends.flatMap((p) => (p.round_trip_ms === null ? [] : [p.round_trip_ms]));
  return { ms: told.length === 0 ? null : told.reduce((x, y) => x + y, 0) / told.length, connected: ends.length > 0 && ends.every((p) => p.connected) };
}

/** The room that a site takes with its name. */
export const roomOf = (p: Place): Box => ({ x: at(p).x, y: at(p).y + 16, wide: 92, high: 72 });

const labelHigh = 17;

/** The sites as a graph: near each other if their latency is low. */
export function Graph({ places, nodes, survey }: { places: readonly Place[]; nodes: Node[]; survey: Survey | null }): JSX.Element {
  const pairs = places.flatMap((a, i) => places.slice(i + 1).map((b) => ({ key: `${a.name} ${b.name}`, a: at(a), b: at(b), ...between(survey, a.name, b.name) })));
  const texts = pairs.map((p) => (p.connected ? latency(p.ms) : survey === null ? "" : "cut off"));
  const spots = places.length > 8 ? [] : labels(pairs.map((p, i) => ({ from: p.a, to: p.b, wide: (texts[i]?.length ?? 0) * 6.4 + 8 })), labelHigh, places.map(roomOf));
  return (
    <svg class="graph" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Graph of ${places.length} sites with the round trips between them. The table has all figures.`}>
      {pairs.map(({ key, a, b, connected }) => (
        <line key={key} class={connected || survey === null ? "edge" : "edge cut"} x1={a.x} y1={a.y} x2={b.x} y2={b.y} />
      ))}
      {spots.map((s, i) => (
        <g key={pairs[i]?.key} class={pairs[i]?.connected === true ? "edge-label" : "edge-label cut"}>
          <rect x={s.x - s.wide / 2} y={s.y - 9} width={s.wide} height={labelHigh} rx={3} />
          <text x={s.x} y={s.y + 4}>
            {texts[i]}
          </text>
        </g>
      ))}
      {places.map((p) => {
        const n = nodes.find((x) => x.name === p.name);
        return n === undefined ? null : <NodeMark key={p.name} place={p} node={n} />;
      })}
    </svg>
  );
}

function NodeMark({ place, node }: { place: Place; node: Node }): JSX.Element {
  const { x, y } = at(place);
  return (
    <g class={`node ${node.kind}`} transform={`translate(${x} ${y})`}>
      <circle class={`ring ${colorClass(node.color)}`} r="17" />
      {node.kind === "bad" && <path class="sign" d="M-6-6 6 6M6-6-6 6" />}
      {node.kind === "busy" && <path class="sign" d="M-7 0H7M3-4 7 0 3 4" />}
      {node.kind === "warn" && <path class="sign" d="M0-8V2M0 6V8" />}
      {node.kind === "ok" && <path class="sign" d="M-6 0-2 5 7-5" />}
      <text class="name" y="33">
        {node.name}
      </text>
      <text class="holds" y="48">
        {node.kind === "ok" ? node.holds : node.words}
      </text>
    </g>
  );
}
