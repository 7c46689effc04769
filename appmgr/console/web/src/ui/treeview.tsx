import { type JSX } from "preact";
import { useRef, useState } from "preact/hooks";

import { type EntityStatus } from "../model/api.js";
import { count, percent } from "../model/format.js";
import { href } from "../model/routes.js";
import { type Tree, rows, step } from "../model/tree.js";

interface Props {
  tree: Tree;
  current: string;
  usage: Readonly<Record<string, EntityStatus>>;
  turn: (name: string, open: boolean) => void;
  more: (parent: string, next: string) => void;
  go: (address: string) => void;
}

/** A hierarchy as a tree that arrow keys walk. */
export function TreeView(p: Props): JSX.Element {
  const all = rows(p.tree);
  const [focus, setFocus] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const onKey = (e: KeyboardEvent): void => {
    const next = step(all, focus, e.key);
    const row = all[focus];
    if (e.key === "Enter" && row !== undefined) {
      e.preventDefault();
      row.more !== undefined ? p.more(row.entity.name, row.more) : p.go(href({ page: "entity", name: row.entity.name }));
      return;
    }
    if (next === null) {
      return;
    }
    e.preventDefault();
    if ("to" in next) {
      setFocus(next.to);
      (list.current?.children[next.to] as HTMLElement | undefined)?.focus();
    } else if ("open" in next) {
      p.turn(next.open, true);
    } else {
      p.turn(next.close, false);
    }
  };
  return (
    <ul class="tree" role="tree" aria-label="Hierarchy" ref={list} onKeyDown={onKey}>
      {all.map((r, i) => (
        <li
          key={r.more === undefined ? r.entity.name : `${r.entity.name} more`}
          role="treeitem"
          class={`level-${Math.min(8, r.level)} ${r.entity.name === p.current && r.more === undefined ? "current" : ""}`}
          aria-level={r.level}
          aria-posinset={r.position}
          aria-setsize={r.of}
          aria-selected={r.entity.name === p.current && r.more === undefined}
          {...(r.leaf ? {} : { "aria-expanded": r.open })}
          tabIndex={i === Math.min(focus, all.length - 1) ? 0 : -1}
          onFocus={() => setFocus(i)}
          onClick={() => (r.more !== undefined ? p.more(r.entity.name, r.more) : p.go(href({ page: "entity", name: r.entity.name })))}
        >
          <span
            class="twist"
            aria-hidden="true"
            onClick={(e) => {
              if (!r.leaf) {
                e.stopPropagation();
                p.turn(r.entity.name, !r.open);
              }
            }}
          >
            {r.leaf ? "" : r.open ? "▾" : "▸"}
          </span>
          {r.more !== undefined ? <span class="name">further entities …</span> : <TreeRow name={r.entity.name} limit={r.entity.limit} usage={p.usage[r.entity.name]} />}
        </li>
      ))}
    </ul>
  );
}

function TreeRow({ name, limit, usage }: { name: string; limit: number; usage: EntityStatus | undefined }): JSX.Element {
  return (
    <>
      <span class="name">{name}</span>
      {usage !== undefined && <Meter part={usage.acquired} of={limit} />}
      <span class="number">
        {usage === undefined ? `limit ${count(limit)}` : `${count(usage.acquired)} of ${count(limit)} out`}
      </span>
    </>
  );
}

/** A bar that shows a part of a whole; the figures stand beside it. */
export function Meter({ part, of, label }: { part: number; of: number; label?: string }): JSX.Element {
  const full = of > 0 ? Math.max(0, Math.min(1, part / of)) : 0;
  return (
    <svg class={`meter ${part > of ? "over" : ""}`} viewBox="0 0 100 8" preserveAspectRatio="none" role={label === undefined ? "presentation" : "img"} aria-label={label ?? percent(part, of)} aria-hidden={label === undefined}>
      <rect class="whole" width="100" height="8" rx="1" />
      <rect class="part" width={100 * full} height="8" rx="1" />
    </svg>
  );
}
