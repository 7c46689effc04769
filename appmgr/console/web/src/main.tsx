// Starts the console: the store, the page of the address, keys, and what is said aloud.

import { render } from "preact";

import "uplot/dist/uPlot.min.css";
import "./style.css";

import { announcements } from "./model/announce.js";
import { type Command, nothingPressed, press } from "./model/keys.js";
import { type Route, href, parse, title } from "./model/routes.js";
import { type Theme, initial } from "./model/state.js";
import { Pages } from "./shell/pages.js";
import { Store } from "./shell/store.js";
import { App } from "./ui/app.js";

const themeKey = "samya-theme";
const themes: readonly Theme[] = ["auto", "light", "dark"];
/** The least time between two announcements, in milliseconds. */
const quiet = 3_000;

const stored = themes.find((t) => t === localStorage.getItem(themeKey)) ?? "auto";
const store = new Store(initial(Date.now(), parse(location.pathname, location.search), stored));
const pages = new Pages(store);
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const root = document.getElementById("app")!;

let said = "";
let unsaid: string[] = [];
let saidAt = 0;

const isDark = (): boolean => store.state.theme === "dark" || (store.state.theme === "auto" && systemDark.matches);

function nextTheme(): void {
  const theme = themes[(themes.indexOf(store.state.theme) + 1) % themes.length] ?? "auto";
  localStorage.setItem(themeKey, theme);
  store.dispatch({ type: "theme", theme });
}

function paint(): void {
  document.documentElement.dataset["theme"] = isDark() ? "dark" : "light";
  const { route, caller } = store.state;
  document.title = `${title(route)} – ${caller?.cluster ?? "samya"} – samya console`;
  render(<App s={store.state} store={store} pages={pages} go={go} said={said} dark={isDark()} nextTheme={nextTheme} />, root);
}

/** Goes to an address of the console. */
function go(address: string): void {
  if (address !== location.pathname + location.search) {
    history.pushState(null, "", address);
  }
  show(parse(location.pathname, location.search));
  window.scrollTo(0, 0);
  document.getElementById("main")?.focus({ preventScroll: true });
}

function show(route: Route): void {
  store.dispatch({ type: "route", route });
  pages.open(route);
}

store.look((before, now) => {
  unsaid.push(...announcements(before, now));
  paint();
});

function say(): void {
  if (unsaid.length > 0 && Date.now() - saidAt >= quiet) {
    said = unsaid.slice(-4).join(" ");
    unsaid = [];
    saidAt = Date.now();
    paint();
  }
}

const commands: Record<Command, () => void> = {
  cluster: () => go(href({ page: "cluster" })),
  search: () => go(href({ page: "search", query: "" })),
  incidents: () => go(href({ page: "incidents" })),
  admin: () => go(href({ page: "admin", action: "limit", name: "" })),
  "focus-search": () => (document.getElementById(store.state.route.page === "search" ? "search-text" : "find") as HTMLInputElement | null)?.focus(),
  help: () => store.dispatch({ type: "help", open: true }),
  theme: nextTheme,
  close: () => store.dispatch({ type: "help", open: false }),
};

let pressed = nothingPressed;
document.addEventListener("keydown", (e) => {
  const at = e.target as HTMLElement;
  const typing = at.matches("input, textarea, select, [contenteditable]");
  if (e.ctrlKey || e.metaKey || e.altKey || typing || store.state.help || store.state.login !== null) {
    return;
  }
  const got = press(pressed, e.key, Date.now());
  pressed = got.pressed;
  if (got.command !== null) {
    e.preventDefault();
    commands[got.command]();
  }
});

document.addEventListener("click", (e) => {
  const a = (e.target as Element).closest("a");
  if (a === null || e.defaultPrevented || e.button !== 0 || e.ctrlKey || e.metaKey || e.shiftKey || a.target !== "" || a.origin !== location.origin || !a.pathname.startsWith("/console/") || a.hash !== "") {
    return;
  }
  e.preventDefault();
  go(a.pathname + a.search);
});

addEventListener("popstate", () => show(parse(location.pathname, location.search)));
addEventListener("pagehide", () => pages.end());
addEventListener("pageshow", (e) => {
  if (e.persisted) {
    void pages.begin();
  }
});
systemDark.addEventListener("change", paint);
setInterval(() => {
  store.dispatch({ type: "tick", now: Date.now() });
  say();
}, 1000);

paint();
void pages.begin();
