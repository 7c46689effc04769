// What a screen reader is told of changes that others see by a glance.

import { count } from "./format.js";
import { type State } from "./state.js";

/** Sentences on the changes between two states; the latest first is no order, all are new. */
export function announcements(before: State, now: State): string[] {
  const out: string[] = [];
  for (const m of now.members.value?.members ?? []) {
    const old = before.members.value?.members.find((o) => o.name === m.name);
    if (before.members.value === null) {
      continue;
    }
    if (old === undefined) {
      out.push(`Site ${m.name} is ${m.state}.`);
    } else if (old.state !== m.state) {
      out.push(`Site ${m.name} is now ${m.state}.`);
    } else if (old.health !== m.health) {
      out.push(`Site ${m.name} is ${m.health}.`);
    }
  }
  const [a, b] = [before.entity, now.entity];
  if (a !== null && b !== null && a.name === b.name && a.status.value !== null && b.status.value !== null) {
    if (a.status.value.limit !== b.status.value.limit) {
      out.push(`The limit of ${b.name} is now ${count(b.status.value.limit)} tokens.`);
    }
    if (!a.deleted && b.deleted) {
      out.push(`${b.name} was deleted.`);
    }
  }
  if (before.search.busy && !now.search.busy && now.search.query !== "") {
    const n = now.search.results.length;
    out.push(n === 0 ? "No entity found." : `${n}${now.search.next === "" ? "" : " or more"} entities found.`);
  }
  if (staleNow(now) !== staleNow(before)) {
    out.push(staleNow(now) ? "Live updates are lost." : "Live updates are back.");
  }
  return out;
}

/** Whether what the open page watches is stale. */
export function staleNow(s: State): boolean {
  return s.members.staleSince !== null || (s.entity?.status.staleSince ?? null) !== null;
}
