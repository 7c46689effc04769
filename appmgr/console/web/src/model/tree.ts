// The tree of a hierarchy: which entities are known, which are open, and the rows to show.

import { type Entity } from "./api.js";

export interface Branch {
  readonly children: readonly Entity[];
  /** Where the next children begin; "" if all are known. */
  readonly next: string;
}

export interface Tree {
  readonly root: Entity | null;
  /** The children that were read, by the name of the parent. */
  readonly branches: Readonly<Record<string, Branch>>;
  readonly open: Readonly<Record<string, boolean>>;
}

export interface Row {
  readonly entity: Entity;
  /** 1 for the root. */
  readonly level: number;
  readonly open: boolean;
  readonly leaf: boolean;
  readonly position: number;
  readonly of: number;
  /** Set on a row that stands for children not read yet. */
  readonly more?: string;
}

export const noTree: Tree = { root: null, branches: {}, open: {} };

/** The rows of a tree in the order shown. */
export function rows(t: Tree): Row[] {
  const out: Row[] = [];
  const walk = (entity: Entity, level: number, position: number, of: number): void => {
    const open = t.open[entity.name] === true;
    out.push({ entity, level, open, leaf: (entity.children ?? 0) === 0, position, of });
    const branch = t.branches[entity.name];
    if (!open || branch === undefined) {
      return;
    }
    const all = Math.max(entity.children ?? 0, branch.children.length);
    branch.children.forEach((c, i) => walk(c, level + 1, i + 1, all));
    if (branch.next !== "") {
      out.push({ entity, level: level + 1, open: false, leaf: true, position: branch.children.length + 1, of: all, more: branch.next });
    }
  };
  if (t.root !== null) {
    walk(t.root, 1, 1, 1);
  }
  return out;
}

/** Adds a page of children. */
export function grow(t: Tree, parent: string, page: { entities: readonly Entity[]; next_page_token: string }, further: boolean): Tree {
  const before = further ? (t.branches[parent]?.children ?? []) : [];
  return { ...t, branches: { ...t.branches, [parent]: { children: [...before, ...page.entities], next: page.next_page_token } } };
}

/** Opens or closes an entity. */
export const turn = (t: Tree, name: string, open: boolean): Tree => ({ ...t, open: { ...t.open, [name]: open } });

/** Where the arrow keys lead from a row: the index of the row to focus, or a row to open or close. */
export function step(all: readonly Row[], from: number, key: string): { to: number } | { open: string } | { close: string } | null {
  const row = all[from];
  if (row === undefined) {
    return null;
  }
  switch (key) {
    case "ArrowDown":
      return { to: Math.min(all.length - 1, from + 1) };
    case "ArrowUp":
      return { to: Math.max(0, from - 1) };
    case "Home":
      return { to: 0 };
    case "End":
      return { to: all.length - 1 };
    case "ArrowRight":
      if (row.leaf) {
        return null;
      }
      return row.open ? { to: Math.min(all.length - 1, from + 1) } : { open: row.entity.name };
    case "ArrowLeft":
      if (row.open) {
        return { close: row.entity.name };
      }
      for (let i = from - 1; i >= 0; i--) {
        if ((all[i]?.level ?? 0) < row.level) {
          return { to: i };
        }
      }
      return null;
    default:
      return null;
  }
}
