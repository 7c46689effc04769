import { type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { clock, span } from "../model/format.js";
import { keyTable } from "../model/keys.js";
import { type Route, href } from "../model/routes.js";
import { type State } from "../model/state.js";
import { AdminPage } from "../pages/admin.js";
import { ClusterPage } from "../pages/cluster.js";
import { EntityPage } from "../pages/entity.js";
import { IncidentsPage } from "../pages/incidents.js";
import { SearchPage } from "../pages/search.js";
import { token } from "../shell/http.js";
import { type Pages } from "../shell/pages.js";
import { type Store } from "../shell/store.js";
import { type Shown } from "./context.js";
import { Link, Status } from "./parts.js";
import { SearchBox } from "./searchbox.js";

const pages: { to: Route; name: string }[] = [
  { to: { page: "cluster" }, name: "Cluster" },
  { to: { page: "search", query: "" }, name: "Search" },
  { to: { page: "incidents" }, name: "Incidents" },
  { to: { page: "admin", action: "limit", name: "" }, name: "Administration" },
];

interface Props {
  s: State;
  store: Store;
  pages: Pages;
  go: (address: string) => void;
  said: string;
  dark: boolean;
  nextTheme: () => void;
}

export function App(p: Props): JSX.Element {
  const { s } = p;
  if (s.login !== null) {
    return <Login {...p} />;
  }
  const order = [...new Set([...(s.survey.value?.sites ?? []).map((x) => x.site), ...(s.members.value?.members ?? []).map((m) => m.name)])].sort();
  const shown: Shown = { s, store: p.store, pages: p.pages, go: p.go, look: `${p.dark}`, colorOf: (site) => Math.max(0, order.indexOf(site)) };
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="bar">
        <Link to={{ page: "cluster" }} class="brand">
          samya
        </Link>
        <nav aria-label="Pages">
          {pages.map((x) => (
            <Link key={x.name} to={x.to} aria-current={x.to.page === s.route.page ? "page" : undefined}>
              {x.name}
            </Link>
          ))}
        </nav>
        <SearchBox
          id="find"
          label="Search entities (press /)"
          placeholder="Search entities  /"
          view={s.search}
          search={(q) => void p.pages.search(q)}
          chosen={(name) => p.go(href({ page: "entity", name }))}
          entered={(q) => p.go(href({ page: "search", query: q }))}
        />
        <div class="who">
          <Live s={s} />
          <Who s={s} />
          <button type="button" class="plain" onClick={p.nextTheme} aria-label={`Colours: ${s.theme}. Change`} title="Colours (t)">
            {s.theme === "auto" ? "Auto" : s.theme === "dark" ? "Dark" : "Light"}
          </button>
          <button type="button" class="plain" onClick={() => p.store.dispatch({ type: "help", open: true })} aria-label="Keys" title="Keys (?)">
            ?
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <PageOf {...shown} />
      </main>
      <div class="visually-hidden" aria-live="polite" id="said">
        {p.said}
      </div>
      {s.help && <Help close={() => p.store.dispatch({ type: "help", open: false })} />}
    </>
  );
}

function PageOf(shown: Shown): JSX.Element {
  switch (shown.s.route.page) {
    case "cluster":
      return <ClusterPage {...shown} />;
    case "entity":
      return <EntityPage key={shown.s.route.name} {...shown} />;
    case "search":
      return <SearchPage {...shown} />;
    case "incidents":
      return <IncidentsPage {...shown} />;
    case "admin":
      return <AdminPage {...shown} />;
  }
}

/** Whether what is shown is live, and since when it is not. */
function Live({ s }: { s: State }): JSX.Element {
  const since = [s.members.staleSince, s.entity?.status.staleSince ?? null].filter((x) => x !== null);
  if (since.length > 0) {
    const from = Math.min(...since);
    return (
      <span class="live lost">
        <Status kind="warn">
          stale since {clock(from)}, {span(s.now - from)}
        </Status>
      </span>
    );
  }
  return <span class="live">{s.members.value === null ? <Status kind="idle">connecting</Status> : <Status kind="ok">live</Status>}</span>;
}

function Who({ s }: { s: State }): JSX.Element | null {
  const c = s.caller;
  if (c === null) {
    return null;
  }
  return (
    <span class="caller">
      {c.open ? "no sign-in here" : c.name} · {c.role}
      {token.get() !== "" && (
        <button
          type="button"
          class="plain"
          onClick={() => {
            token.set("");
            location.reload();
          }}
        >
          Sign out
        </button>
      )}
    </span>
  );
}

function Login({ s, pages: p }: Props): JSX.Element {
  const [text, setText] = useState("");
  const refused = token.get() !== "" || s.login?.problem?.status === 403;
  const submit = (e: Event): void => {
    e.preventDefault();
    token.set(text.trim());
    void p.begin();
  };
  return (
    <main id="main" class="login">
      <form class="card" onSubmit={submit}>
        <h1>samya</h1>
        <p>This cluster asks who you are.</p>
        <div class="field">
          <label for="token">Token</label>
          <input id="token" type="password" autocomplete="off" value={text} onInput={(e) => setText(e.currentTarget.value)} aria-describedby="token-hint" aria-invalid={refused} />
          <p class="note" id="token-hint">
            A token of the access file, or a JWT. It is kept until this tab is closed, and sent to this app manager alone.
          </p>
        </div>
        {refused && s.login?.problem && (
          <p role="alert">
            <Status kind="bad">
              {s.login.problem.title}
              {s.login.problem.detail !== "" && `: ${s.login.problem.detail}`}
            </Status>
          </p>
        )}
        <button type="submit" class="primary" disabled={text.trim() === ""}>
          Go on
        </button>
      </form>
    </main>
  );
}

function Help({ close }: { close: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} class="card help" aria-labelledby="help-title" onClose={close}>
      <h2 id="help-title">Keys</h2>
      <table>
        <tbody>
          {keyTable.map((k) => (
            <tr key={k.keys}>
              <th scope="row">
                {k.keys.split(" ").map((x, i) => (
                  <span key={x}>
                    {i > 0 && " then "}
                    <kbd>{x}</kbd>
                  </span>
                ))}
              </th>
              <td>{k.text}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <button type="button" onClick={close}>
        Close
      </button>
    </dialog>
  );
}
