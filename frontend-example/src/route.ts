/** Where in the page we are: kept in the address behind "#", so that any static file server will do. */

import { useSyncExternalStore } from "react";

export type Route =
  | { page: "forest"; id?: string }
  | { page: "session"; id: string; tab: SessionTab }
  | { page: "runs" }
  | { page: "run"; sessionId: string; turnId: string }
  | { page: "digests" };
export const SESSION_TABS = ["conversation", "surface", "log", "runs"] as const;
export type SessionTab = (typeof SESSION_TABS)[number];

export function parse(hash: string): Route {
  const [page, first, second] = hash.replace(/^#\/?/, "").split("/").map(decoded);
  if (page === "session" && first) {
    return { page, id: first, tab: SESSION_TABS.find((tab) => tab === second) ?? "conversation" };
  }
  if (page === "run" && first && second) return { page, sessionId: first, turnId: second };
  if (page === "runs" || page === "digests") return { page };
  return { page: "forest", id: page === "forest" && first ? first : undefined };
}

/** Somebody may have written any address by hand. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

export const hrefOf = {
  forest: (id?: string) => (id === undefined ? "#/forest" : `#/forest/${encodeURIComponent(id)}`),
  session: (id: string, tab: SessionTab = "conversation") =>
    `#/session/${encodeURIComponent(id)}${tab === "conversation" ? "" : `/${tab}`}`,
  runs: () => "#/runs",
  run: (sessionId: string, turnId: string) => `#/run/${encodeURIComponent(sessionId)}/${encodeURIComponent(turnId)}`,
  digests: () => "#/digests",
};

export function go(href: string) {
  location.hash = href;
}

function subscribe(listener: () => void) {
  addEventListener("hashchange", listener);
  return () => removeEventListener("hashchange", listener);
}

export function useRoute(): Route {
  return parse(useSyncExternalStore(subscribe, () => location.hash));
}
