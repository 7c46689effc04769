import { type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { type Entity } from "../model/api.js";
import { count } from "../model/format.js";
import { href } from "../model/routes.js";
import { type SearchView } from "../model/state.js";

/** How long typing rests before a search, in milliseconds. */
const rest = 60;

/** A name with the searched part marked. */
export function Marked({ name, query }: { name: string; query: string }): JSX.Element {
  const i = name.toLowerCase().indexOf(query.toLowerCase());
  if (query === "" || i < 0) {
    return <>{name}</>;
  }
  return (
    <>
      {name.slice(0, i)}
      <mark>{name.slice(i, i + query.length)}</mark>
      {name.slice(i + query.length)}
    </>
  );
}

interface Props {
  id: string;
  label: string;
  view: SearchView;
  search: (query: string) => void;
  chosen: (name: string) => void;
  /** Enter without a choice. */
  entered?: (query: string) => void;
  placeholder?: string;
}

/** A field that finds entities while one types, with a list under it. */
export function SearchBox(p: Props): JSX.Element {
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const results: readonly Entity[] = p.view.query === text ? p.view.results.slice(0, 10) : [];
  const shown = open && text !== "";
  const type = (value: string): void => {
    setText(value);
    setOpen(true);
    setAt(-1);
    clearTimeout(timer.current);
    if (value !== "") {
      timer.current = setTimeout(() => p.search(value), rest);
    }
  };
  const choose = (name: string): void => {
    setOpen(false);
    setText("");
    p.chosen(name);
  };
  const onKey = (e: KeyboardEvent): void => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      setOpen(true);
      setAt(Math.max(-1, Math.min(results.length - 1, at + (e.key === "ArrowDown" ? 1 : -1))));
    } else if (e.key === "Enter") {
      e.preventDefault();
      // What is drawn may lag behind what was typed.
      const typed = (e.currentTarget as HTMLInputElement).value;
      const hit = results[at] ?? results.find((r) => r.name === typed);
      if (hit !== undefined) {
        choose(hit.name);
      } else if (p.entered !== undefined) {
        setOpen(false);
        p.entered(typed);
      }
    } else if (e.key === "Escape") {
      setOpen(false);
      (e.target as HTMLElement).blur();
    }
  };
  return (
    <div class="searchbox">
      <label for={p.id} class="visually-hidden">
        {p.label}
      </label>
      <input
        id={p.id}
        type="text"
        role="combobox"
        autocomplete="off"
        spellcheck={false}
        placeholder={p.placeholder ?? p.label}
        value={text}
        aria-expanded={shown}
        aria-controls={`${p.id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={shown && at >= 0 ? `${p.id}-${at}` : undefined}
        onInput={(e) => type(e.currentTarget.value)}
        onKeyDown={onKey}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
      />
      <div class="suggestions" hidden={!shown}>
        <ul id={`${p.id}-list`} role="listbox" aria-label="Entities found">
          {results.map((r, i) => (
            <li key={r.name} id={`${p.id}-${i}`} role="option" aria-selected={i === at} onMouseDown={(e) => e.preventDefault()} onClick={() => choose(r.name)}>
              <span class="name">
                <Marked name={r.name} query={text} />
              </span>
              <span class="number">
                {count(r.limit)} <span class="unit">tokens</span>
              </span>
            </li>
          ))}
        </ul>
        {results.length === 0 && <p class="empty">{p.view.problem !== null ? p.view.problem.title : p.view.busy || p.view.query !== text ? "Searching …" : "No entity has this in its name."}</p>}
        {results.length > 0 && (p.view.next !== "" || p.view.results.length > 10) && p.entered !== undefined && (
          <p class="note">
            <a href={href({ page: "search", query: text })} onMouseDown={(e) => e.preventDefault()} tabIndex={-1}>
              All results: Enter
            </a>
          </p>
        )}
      </div>
    </div>
  );
}
