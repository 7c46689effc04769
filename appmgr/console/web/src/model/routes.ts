// Addresses of the pages. The name of an entity is in the query, since names may look like files.

export type Route =
  | { page: "cluster" }
  | { page: "search"; query: string }
  | { page: "entity"; name: string }
  | { page: "incidents" }
  | { page: "admin"; action: Action; name: string };

/** What the page of administration changes. */
export type Action = "limit" | "create" | "drain";

export const actions: readonly Action[] = ["limit", "create", "drain"];

const base = "/console/";

/** Reads an address; an unknown one is the page of the cluster. */
export function parse(path: string, search: string): Route {
  const q = new URLSearchParams(search);
  switch (path.replace(/^\/console\/?/, "").replace(/\/$/, "")) {
    case "search":
      return { page: "search", query: q.get("q") ?? "" };
    case "entity":
      return { page: "entity", name: q.get("name") ?? "" };
    case "incidents":
      return { page: "incidents" };
    case "admin": {
      const action = actions.find((a) => a === q.get("action")) ?? "limit";
      return { page: "admin", action, name: q.get("name") ?? "" };
    }
    default:
      return { page: "cluster" };
  }
}

/** The address of a page. */
export function href(r: Route): string {
  const q = new URLSearchParams();
  const set = (key: string, value: string): void => {
    if (value !== "") {
      q.set(key, value);
    }
  };
  switch (r.page) {
    case "cluster":
      return base;
    case "search":
      set("q", r.query);
      break;
    case "entity":
      set("name", r.name);
      break;
    case "admin":
      set("action", r.action);
      set("name", r.name);
      break;
    case "incidents":
      break;
  }
  const query = q.toString().replaceAll("%2F", "/");
  return base + r.page + (query === "" ? "" : `?${query}`);
}

/** What stands in the title of the window. */
export function title(r: Route): string {
  switch (r.page) {
    case "cluster":
      return "Cluster";
    case "search":
      return "Search";
    case "entity":
      return r.name;
    case "incidents":
      return "Incidents";
    case "admin":
      return "Administration";
  }
}

/** The path of an entity in the API, with an optional verb. */
export function entityPath(name: string, verb = ""): string {
  return `/v1/entities/${name.split("/").map(encodeURIComponent).join("/")}${verb === "" ? "" : `:${verb}`}`;
}
