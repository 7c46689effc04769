import { type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { count, counted } from "../model/format.js";
import { href } from "../model/routes.js";
import { type Shown } from "../ui/context.js";
import { Link, ProblemBox, Scroll } from "../ui/parts.js";
import { Marked } from "../ui/searchbox.js";

const rest = 60;

export function SearchPage(p: Shown): JSX.Element {
  const { search, route } = p.s;
  const asked = route.page === "search" ? route.query : "";
  const [text, setText] = useState(asked);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    setText(asked);
    void p.pages.search(asked);
    return () => clearTimeout(timer.current);
  }, [asked]);
  const type = (value: string): void => {
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      history.replaceState(null, "", href({ page: "search", query: value }));
      void p.pages.search(value);
    }, rest);
  };
  return (
    <>
      <h1>Search</h1>
      <div class="search-field">
        <label for="search-text">Part of the name of an entity</label>
        <input id="search-text" type="search" autocomplete="off" spellcheck={false} value={text} onInput={(e) => type(e.currentTarget.value)} />
      </div>
      {search.problem !== null && <ProblemBox problem={search.problem} />}
      {search.query === text && search.problem === null && (
        <>
          <p class="note" id="search-count">
            {search.results.length === 0 && !search.busy
              ? text === "" ? "There is no entity yet." : "No entity has this in its name."
              : `${counted(search.results.length, "entity", "entities")}${search.next === "" ? "" : " and more"}${text === "" ? " without a parent" : ""}`}
            {search.took !== null && !search.busy && `, in ${count(search.took)} ms`}
            {search.busy && ", searching …"}
          </p>
          {search.results.length > 0 && (
            <Scroll label="Entities found" class="card">
              <table class="results">
                <caption class="visually-hidden">{text === "" ? "Entities without a parent" : `Entities with ${text} in their names`}</caption>
                <thead>
                  <tr>
                    <th scope="col">Entity</th>
                    <th scope="col" class="number">Limit <span class="unit">tokens</span></th>
                    <th scope="col">Below</th>
                    <th scope="col" class="number">Children</th>
                  </tr>
                </thead>
                <tbody>
                  {search.results.map((e) => (
                    <tr key={e.name}>
                      <th scope="row">
                        <Link to={{ page: "entity", name: e.name }}>
                          <Marked name={e.name} query={text} />
                        </Link>
                      </th>
                      <td class="number">
                        {count(e.limit)}
                        {e.per !== undefined && <span class="unit"> per {e.per}</span>}
                      </td>
                      <td>{e.parent === undefined ? "" : <Link to={{ page: "entity", name: e.parent }}>{e.parent}</Link>}</td>
                      <td class="number">{e.children === undefined ? "" : count(e.children)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
          )}
          {search.next !== "" && (
            <button type="button" onClick={() => void p.pages.search(text, search.next)}>
              Show more
            </button>
          )}
        </>
      )}
    </>
  );
}
