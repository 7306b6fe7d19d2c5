/** One session: where it stands, and four looks at it. */

import type { Forest, ForestNode } from "../forest/changes";
import { useForest } from "../forest/live";
import { count, plural } from "../format";
import { Problem } from "../problem";
import { hrefOf, SESSION_TABS, type SessionTab } from "../route";
import { SessionRuns } from "../runs/list";
import { useLiveSession, type SessionAnswer } from "./live";
import { LogTab } from "./log";
import { nextSeq } from "./merge";
import { Slots } from "./slots";
import { SurfaceTab } from "./surface";
import { Talk } from "./talk";

const TITLES: Record<SessionTab, string> = {
  conversation: "Conversation",
  surface: "Surface",
  log: "Log",
  runs: "Runs",
};

export function SessionPage({ id, tab }: { id: string; tab: SessionTab }) {
  const { forest } = useForest();
  const node = forest?.get(id);
  const live = useLiveSession(id, forest?.has(id));
  const { known, error, missing } = live;
  if (missing) {
    return (
      <main className="middle">
        <h1>No such session</h1>
        <p className="quiet">
          There is no session <code>{id}</code> here, or not any more. <a href={hrefOf.forest()}>To the forest</a>
        </p>
      </main>
    );
  }
  if (known === undefined) {
    return <main className="middle">{error ? <Problem error={error} /> : <p className="quiet">Opening …</p>}</main>;
  }
  const status = node?.status ?? known.session.status;
  const session = { ...known.session, label: node?.label ?? known.session.label, status };
  const head = nextSeq(known.events, known.followedFrom);
  return (
    <main className="session">
      <Head session={session} head={head} turns={node?.turnCount} />
      <nav className="tabs" aria-label="Looks at the session">
        {SESSION_TABS.map((name) => (
          <a key={name} href={hrefOf.session(id, name)} aria-current={name === tab ? "page" : undefined}>
            {TITLES[name]}
          </a>
        ))}
      </nav>
      <Problem error={error} />
      <div className="columns">
        <div className="main-column">
          {tab === "conversation" ? <Talk known={{ ...known, session }} loadEarlier={live.loadEarlier} /> : null}
          {tab === "surface" ? <SurfaceTab id={id} head={head} /> : null}
          {tab === "log" ? <LogTab known={known} loadLog={live.loadLog} /> : null}
          {tab === "runs" ? <SessionRuns id={id} head={head} /> : null}
        </div>
        <Slots id={id} writable={status === "ACTIVE"} head={head} />
      </div>
    </main>
  );
}

function Head({ session, head, turns }: { session: SessionAnswer; head: number; turns: number | undefined }) {
  const { node, stats } = session;
  const { forest } = useForest();
  const source = forest?.get(node.sourceSessionId ?? "");
  return (
    <header className="head">
      <nav className="crumbs" aria-label="Ancestors">
        <a href={hrefOf.forest(session.id)}>Forest</a>
        {(ancestorsIn(forest, session.id) ?? [...node.ancestors].reverse()).map((ancestor) => (
          <a key={ancestor.id} href={hrefOf.session(ancestor.id)}>
            {ancestor.label}
          </a>
        ))}
      </nav>
      <h1>{session.label}</h1>
      <p className="facts">
        {session.status === "ARCHIVED" ? <span className="tag">archived</span> : null}
        {turns === undefined ? null : <span>{plural(turns, "turn")}</span>}
        <span>{plural(head, "event")}</span>
        {stats.inheritedEventCount > 0 ? <span>{count(stats.inheritedEventCount)} of them inherited</span> : null}
        {stats.totalTokenCount > 0 ? <span>{count(stats.totalTokenCount)} tokens</span> : null}
        {node.sourceSessionId == null ? null : (
          <span className="of-fork">
            fork of{" "}
            {source === undefined ? "a deleted session" : <a href={hrefOf.session(source.id)}>{source.label}</a>} at{" "}
            {count(node.forkSeq ?? 0)}
          </span>
        )}
      </p>
    </header>
  );
}

/** From the root down, as the forest has them now: a session may be moved, and an ancestor renamed, while it is open. */
function ancestorsIn(forest: Forest | undefined, id: string) {
  const node = forest?.get(id);
  if (forest === undefined || node === undefined) return undefined;
  const path: ForestNode[] = [];
  for (let at: string | null | undefined = node.parentId; at != null; at = forest.get(at)?.parentId) {
    const ancestor = forest.get(at);
    if (ancestor !== undefined) path.unshift(ancestor);
  }
  return path;
}
