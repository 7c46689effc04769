import { type Finding } from "./api.js";

/** The findings by kind, in the order of the first of each: the worst first. */
export function grouped(findings: readonly Finding[]): Finding[][] {
  const by = new Map<string, Finding[]>();
  for (const f of findings) {
    const key = `${f.id} ${f.severity}`;
    by.set(key, [...(by.get(key) ?? []), f]);
  }
  return [...by.values()];
}
