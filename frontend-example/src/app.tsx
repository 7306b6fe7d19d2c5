/** The frame around every page: where you can go, how the connection is, light or dark. */

import { useEffect, useState } from "react";
import { DigestsPage } from "./digests/page";
import { ForestPage } from "./forest/page";
import { ForestProvider } from "./forest/live";
import { useConnection } from "./follow";
import { hrefOf, useRoute, type Route } from "./route";
import { RunsPage } from "./runs/list";
import { RunPage } from "./runs/page";
import { SessionPage } from "./session/page";

export function App() {
  const route = useRoute();
  return (
    <ForestProvider>
      <a className="skip" href="#content" onClick={skip}>
        To the content
      </a>
      <header className="bar">
        <a className="brand" href={hrefOf.forest()}>
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <circle cx="16" cy="16" r="14" />
            <circle cx="16" cy="16" r="9" />
            <circle cx="16" cy="16" r="4" />
          </svg>
          Sapwood
        </a>
        <nav aria-label="Pages">
          <a href={hrefOf.forest()} aria-current={route.page === "forest" ? "page" : undefined}>
            Forest
          </a>
          <a href={hrefOf.runs()} aria-current={route.page === "runs" ? "page" : undefined}>
            Runs
          </a>
          <a href={hrefOf.digests()} aria-current={route.page === "digests" ? "page" : undefined}>
            Digests
          </a>
        </nav>
        <ConnectionState />
        <Theme />
      </header>
      <div id="content" tabIndex={-1}>
        <Page route={route} />
      </div>
    </ForestProvider>
  );
}

/** The address behind "#" is the page's own, so the focus is moved by hand. */
function skip(event: { preventDefault: () => void }) {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Page({ route }: { route: Route }) {
  switch (route.page) {
    case "forest":
      return <ForestPage id={route.id} />;
    case "session":
      return <SessionPage key={route.id} id={route.id} tab={route.tab} />;
    case "runs":
      return <RunsPage />;
    case "run":
      return <RunPage key={`${route.sessionId} ${route.turnId}`} sessionId={route.sessionId} turnId={route.turnId} />;
    case "digests":
      return <DigestsPage />;
  }
}

const STATES = { connecting: "Connecting", live: "Live", lost: "Reconnecting" };

function ConnectionState() {
  const { state } = useConnection();
  return (
    <p className="connection" data-state={state} role="status">
      <i aria-hidden="true" />
      {STATES[state]}
    </p>
  );
}

const THEMES = ["auto", "light", "dark"] as const;
type ThemeName = (typeof THEMES)[number];

function Theme() {
  const [theme, setTheme] = useState<ThemeName>(
    () => THEMES.find((name) => name === localStorage.getItem("theme")) ?? "auto",
  );
  useEffect(() => {
    localStorage.setItem("theme", theme);
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "auto";
  return (
    <button
      type="button"
      className="plain theme"
      aria-label={`Colours: ${theme}. Change to ${next}`}
      title={`Colours: ${theme}`}
      onClick={() => setTheme(next)}
    >
      <svg viewBox="0 0 16 16" aria-hidden="true" data-theme-name={theme}>
        <circle cx="8" cy="8" r="6" />
        <path d={theme === "auto" ? "M8 2a6 6 0 0 1 0 12Z" : theme === "dark" ? "M8 2a6 6 0 1 1 0 12a6 6 0 1 1 0-12Z" : ""} />
      </svg>
    </button>
  );
}
