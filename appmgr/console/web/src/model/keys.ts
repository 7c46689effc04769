// Keys of the console, as sequences: "g" then "c" goes to the page of the cluster.

export type Command = "cluster" | "search" | "incidents" | "admin" | "focus-search" | "help" | "theme" | "close";

export const keyTable: readonly { keys: string; command: Command; text: string }[] = [
  { keys: "/", command: "focus-search", text: "Search for an entity" },
  { keys: "g c", command: "cluster", text: "Go to the cluster" },
  { keys: "g s", command: "search", text: "Go to the search" },
  { keys: "g i", command: "incidents", text: "Go to the incidents" },
  { keys: "g a", command: "admin", text: "Go to the administration" },
  { keys: "t", command: "theme", text: "Light, dark, or as the system" },
  { keys: "?", command: "help", text: "Show these keys" },
  { keys: "Escape", command: "close", text: "Close what is open" },
];

/** How long the first key of a sequence counts, in milliseconds. */
export const sequenceTime = 1500;

export interface Pressed {
  readonly prefix: string;
  readonly at: number;
}

export const nothingPressed: Pressed = { prefix: "", at: 0 };

/** Takes a key: the command that it completes, and what is pressed so far. */
export function press(before: Pressed, key: string, at: number): { pressed: Pressed; command: Command | null } {
  const prefix = before.prefix !== "" && at - before.at <= sequenceTime ? before.prefix : "";
  for (const keys of prefix === "" ? [key] : [`${prefix} ${key}`, key]) {
    const hit = keyTable.find((k) => k.keys === keys);
    if (hit !== undefined) {
      return { pressed: nothingPressed, command: hit.command };
    }
    if (keyTable.some((k) => k.keys.startsWith(`${keys} `))) {
      return { pressed: { prefix: keys, at }, command: null };
    }
  }
  return { pressed: nothingPressed, command: null };
}
