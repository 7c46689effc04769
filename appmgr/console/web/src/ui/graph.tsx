import { type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { type Survey } from "../model/api.js";
import { latency } from "../model/format.js";
import { type Box, type Place, labels } from "../model/graph.js";
import { colorClass } from "./chart.js";
import { type Kind } from "./parts.js";

/** The size of a picture, in its own units, and the room at its edges. */
export interface Size {
  readonly width: number;
  readonly height: number;
  readonly edge: number;
}

const sizes: { wide: Size; narrow: Size } = { wide: { width: 720, height: 380, edge: 100 }, narrow: { width: 400, height: 380, edge: 48 } };
const narrowWindow = matchMedia("(max-width: 600px)");

/** The size of a picture that its text can be read at. */
export function useSize(): Size {
  const [narrow, setNarrow] = useState(narrowWindow.matches);
  useEffect(() => {
    const look = (): void => setNarrow(narrowWindow.matches);
    narrowWindow.addEventListener("change", look);
    return () => narrowWindow.removeEventListener("change", look);
  }, []);
  return narrow ? sizes.narrow : sizes.wide;
}

export interface Node {
  name: string;
  region: string;
  kind: Kind;
  words: string;
  /** A line below the name, such as the tokens held. */
  holds: string;
  color: number;
}

export const at = (p: Place, s: Size): { x: number; y: number } => ({ x: s.edge + p.x * (s.width - 2 * s.edge), y: 40 + p.y * (s.height - 110) });

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
const roomOf = (p: Place, s: Size): Box => ({ x: at(p, s).x, y: at(p, s).y + 16, wide: 92, high: 72 });

/** The height of a label, in the units of a picture. */
export const labelHigh = 17;

/** The sites as a graph: near each other if their latency is low. */
export function Graph({ places, nodes, survey }: { places: readonly Place[]; nodes: Node[]; survey: Survey | null }): JSX.Element {
  const size = useSize();
  const pairs = places.flatMap((a, i) => places.slice(i + 1).map((b) => ({ key: `${a.name} ${b.name}`, a: at(a, size), b: at(b, size), ...between(survey, a.name, b.name) })));
  const texts = pairs.map((p) => (p.connected ? latency(p.ms) : survey === null ? "" : "cut off"));
  const spots = places.length > 8 ? [] : labels(pairs.map((p, i) => ({ from: p.a, to: p.b, wide: (texts[i]?.length ?? 0) * 6.4 + 8 })), labelHigh, places.map((p) => roomOf(p, size)));
  return (
    <svg class="graph" viewBox={`0 0 ${size.width} ${size.height}`} role="img" aria-label={`Graph of ${places.length} sites with the round trips between them. The table has all figures.`}>
      {pairs.map(({ key, a, b, connected }) => (
        <line key={key} class={connected || survey === null ? "edge" : "edge cut"} x1={a.x} y1={a.y} x2={b.x} y2={b.y} />
      ))}
      {spots.map((s, i) => texts[i] !== "" && (
        <g key={pairs[i]?.key} class={pairs[i]?.connected === true ? "edge-label" : "edge-label cut"}>
          <rect x={s.x - s.wide / 2} y={s.y - 9} width={s.wide} height={labelHigh} rx={3} />
          <text x={s.x} y={s.y + 4}>
            {texts[i]}
          </text>
        </g>
      ))}
      {places.map((p) => {
        const n = nodes.find((x) => x.name === p.name);
        return n === undefined ? null : <NodeMark key={p.name} x={at(p, size).x} y={at(p, size).y} node={n} />;
      })}
    </svg>
  );
}

function NodeMark({ x, y, node }: { x: number; y: number; node: Node }): JSX.Element {
  return (
    <g class={`node ${node.kind}`} transform={`translate(${x} ${y})`}>
      <circle class={`ring ${colorClass(node.color)}`} r="17" />
      {node.kind === "bad" && <path class="sign" d="M-6-6 6 6M6-6-6 6" />}
      {node.kind === "busy" && <path class="sign" d="M-7 0H7M3-4 7 0 3 4" />}
      {node.kind === "warn" && <path class="sign" d="M0-8V2M0 6V8" />}
      {node.kind === "ok" && <path class="sign" d="M-6 0-2 5 7-5" />}
      <text class="name" y="33">
        {node.region === node.name ? node.name : `${node.name} in ${node.region}`}
      </text>
      <text class="holds" y="48">
        {node.kind === "ok" ? node.holds : node.words}
      </text>
    </g>
  );
}
