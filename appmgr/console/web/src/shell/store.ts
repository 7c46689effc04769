// The store: the state, changed by events alone, and those who look at it. Lookers are told
// once a frame at most.

import { type Event, type State, reduce } from "../model/state.js";

export class Store {
  private lookers = new Set<(before: State, now: State) => void>();
  private shown: State;
  private due = false;

  constructor(public state: State) {
    this.shown = state;
  }

  readonly dispatch = (e: Event): void => {
    this.state = reduce(this.state, e);
    if (!this.due) {
      this.due = true;
      // A hidden tab has no frames.
      document.hidden ? setTimeout(this.show, 200) : requestAnimationFrame(this.show);
    }
  };

  look(looker: (before: State, now: State) => void): void {
    this.lookers.add(looker);
  }

  private readonly show = (): void => {
    this.due = false;
    const before = this.shown;
    this.shown = this.state;
    for (const l of this.lookers) {
      l(before, this.state);
    }
  };
}
