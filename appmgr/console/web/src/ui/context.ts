import { type Pages } from "../shell/pages.js";
import { type Store } from "../shell/store.js";
import { type State } from "../model/state.js";

/** What pages need: the state, and what they may do. */
export interface Shown {
  s: State;
  store: Store;
  pages: Pages;
  go: (address: string) => void;
  /** Changes if charts have to be drawn in other colours. */
  look: string;
  /** The place of a site in the palette. */
  colorOf: (site: string) => number;
}

/** Whether the caller may change entities, and members. */
export const mayChange = (s: State): boolean => s.caller !== null && (s.caller.role === "operator" || s.caller.role === "admin");
export const mayDrain = (s: State): boolean => s.caller?.role === "admin";
