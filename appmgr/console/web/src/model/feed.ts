import { type Problem, notOffered } from "./problem.js";

/** The latest value of something read again and again, and whether the value is still fresh. */
export interface Feed<T> {
  readonly value: T | null;
  /** When the value came; 0: none came yet. */
  readonly at: number;
  /** When reading began to fail; null while it works. */
  readonly staleSince: number | null;
  readonly problem: Problem | null;
  /** False if this app manager does not have the call. */
  readonly offered: boolean;
}

export const noFeed: Feed<never> = { value: null, at: 0, staleSince: null, problem: null, offered: true };

/** A value came. */
export function fed<T>(value: T, at: number): Feed<T> {
  return { value, at, staleSince: null, problem: null, offered: true };
}

/** A read failed: the value stays, and is stale since the first failure. */
export function failed<T>(feed: Feed<T>, problem: Problem, at: number): Feed<T> {
  return { ...feed, problem, staleSince: feed.staleSince ?? at, offered: !notOffered(problem) };
}

/** A sign of life came: the value still holds. */
export function alive<T>(feed: Feed<T>, at: number): Feed<T> {
  return { ...feed, at, staleSince: null, problem: null };
}
