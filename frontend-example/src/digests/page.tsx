/** The orchestrator's table: what each session is about, and a word to several of them at once. */

import type { CombinedError } from "@urql/core";
import { useDeferredValue, useState, type SubmitEvent } from "react";
import { useMutation } from "urql";
import { useForest } from "../forest/live";
import { ago, count, plural } from "../format";
import { SendInsightsDocument, WriteMemoryDocument, type InsightMode } from "../gql/graphql";
import { Problem } from "../problem";
import { hrefOf } from "../route";
import { useDigests, type Digest } from "./collect";

const PAGE = 200;

export function DigestsPage() {
  const { digests, error, collect } = useDigests();
  const { forest } = useForest();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [words, setWords] = useState("");
  const [behindOnly, setBehindOnly] = useState(false);
  const [shown, setShown] = useState(PAGE);
  const wanted = useDeferredValue(words).trim().toLocaleLowerCase();
  // Deleted sessions never turn up in a collection of changes: the forest knows that they are gone.
  const rows = [...(digests?.values() ?? [])]
    .reverse()
    .filter((digest) => forest?.has(digest.id) ?? true)
    .filter((digest) => digest.label.toLocaleLowerCase().includes(wanted))
    .filter((digest) => !behindOnly || behind(digest) > 0);
  const choose = (ids: string[], on: boolean) => {
    const changed = new Set(chosen);
    for (const id of ids) {
      if (on) changed.add(id);
      else changed.delete(id);
    }
    setChosen(changed);
  };
  const open = rows.filter((digest) => digest.status === "ACTIVE").map((digest) => digest.id);
  const receivers = rows.filter((digest) => chosen.has(digest.id));
  return (
    <main className="page">
      <header className="head">
        <h1>Digests</h1>
        <p className="quiet">What each session is about, as an orchestrator sees it.</p>
      </header>
      <Problem error={error} />
      <div className="filters">
        <label className="field">
          <span>Label</span>
          <input type="search" value={words} onChange={(event) => setWords(event.target.value)} />
        </label>
        <label className="switch">
          <input type="checkbox" checked={behindOnly} onChange={(event) => setBehindOnly(event.target.checked)} />
          Memory behind
        </label>
        <span className="tally">{plural(rows.length, "session")}</span>
      </div>
      {receivers.length > 0 ? (
        <Send receivers={receivers} onSent={collect} onClear={() => setChosen(new Set())} />
      ) : null}
      {digests === undefined ? (
        <p className="quiet">Collecting …</p>
      ) : (
        <table className="digests">
          <thead>
            <tr>
              <th scope="col">
                <input
                  type="checkbox"
                  aria-label="Choose all"
                  checked={open.length > 0 && open.every((id) => chosen.has(id))}
                  onChange={(event) => choose(open, event.target.checked)}
                />
              </th>
              <th scope="col">Session</th>
              <th scope="col">Memory</th>
              <th scope="col">Insight waiting</th>
              <th scope="col" className="number">
                Turns
              </th>
              <th scope="col">Last event</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, shown).map((digest) => (
              <Row
                key={digest.id}
                digest={digest}
                chosen={chosen.has(digest.id)}
                onChoose={(on) => choose([digest.id], on)}
                onWritten={collect}
              />
            ))}
          </tbody>
        </table>
      )}
      {rows.length > shown ? (
        <button type="button" className="more" onClick={() => setShown(shown + PAGE)}>
          Show more
        </button>
      ) : null}
    </main>
  );
}

/** How many events the memory does not reflect yet. */
const behind = (digest: Digest) => digest.head - (digest.memory?.atSeq ?? 0);

interface RowProps {
  digest: Digest;
  chosen: boolean;
  onChoose: (on: boolean) => void;
  onWritten: () => void;
}

function Row({ digest, chosen, onChoose, onWritten }: RowProps) {
  const archived = digest.status === "ARCHIVED";
  return (
    <tr data-archived={archived} aria-selected={chosen}>
      <td>
        <input
          type="checkbox"
          aria-label={`Choose ${digest.label}`}
          checked={chosen}
          disabled={archived}
          onChange={(event) => onChoose(event.target.checked)}
        />
      </td>
      <th scope="row">
        <a href={hrefOf.session(digest.id)}>{digest.label}</a>
        {archived ? <span className="tag">archived</span> : null}
      </th>
      <td data-name="Memory">
        <Memory digest={digest} onWritten={onWritten} />
      </td>
      <td data-name="Insight">{digest.insight == null ? <span className="quiet">–</span> : digest.insight.content}</td>
      <td data-name="Turns" className="number">
        {count(digest.turnCount)}
      </td>
      <td data-name="Last event" className="quiet">
        {ago(digest.lastEventAt)}
      </td>
    </tr>
  );
}

function Memory({ digest, onWritten }: { digest: Digest; onWritten: () => void }) {
  const [{ error }, put] = useMutation(WriteMemoryDocument);
  // What was read when the writing began: the version that may be replaced, and the head that the memory will reflect.
  const [draft, setDraft] = useState<{ content: string; seen: number | undefined; head: number }>();
  const late = behind(digest);
  if (draft === undefined) {
    const begin = () =>
      setDraft({ content: digest.memory?.content ?? "", seen: digest.memory?.version, head: digest.head });
    return (
      <>
        {digest.memory == null ? null : <p className="said">{digest.memory.content}</p>}
        {late > 0 ? <span className="late">{plural(late, "event")} behind</span> : null}
        {digest.status === "ACTIVE" ? (
          <button type="button" className="link" aria-label={`Write memory of ${digest.label}`} onClick={begin}>
            Write
          </button>
        ) : null}
      </>
    );
  }
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    const { content, seen, head } = draft;
    const result = await put({ input: { sessionId: digest.id, content, atSeq: head, ifVersion: seen } });
    if (result.error) return;
    setDraft(undefined);
    onWritten();
  };
  return (
    <form onSubmit={(event) => void save(event)}>
      <textarea
        aria-label={`Memory of ${digest.label}`}
        rows={3}
        autoFocus
        value={draft.content}
        onChange={(event) => setDraft({ ...draft, content: event.target.value })}
      />
      <div className="actions">
        <button type="submit" className="primary">
          Save
        </button>
        <button type="button" onClick={() => setDraft(undefined)}>
          Cancel
        </button>
      </div>
      <Problem error={error} />
    </form>
  );
}

/** One insight to many sessions in one request. Each is written on its own; what was refused is said per session. */
function Send({ receivers, onSent, onClear }: { receivers: Digest[]; onSent: () => void; onClear: () => void }) {
  const [{ fetching, error }, send] = useMutation(SendInsightsDocument);
  const [content, setContent] = useState("");
  const [mode, setMode] = useState<InsightMode>("REPLACE");
  const [refused, setRefused] = useState<{ sessionId: string; message?: string | null }[]>([]);
  const [problem, setProblem] = useState<CombinedError>();
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const result = await send({ inputs: receivers.map(({ id }) => ({ sessionId: id, content, mode })) });
    setProblem(result.error);
    if (!result.data) return;
    const failed = result.data.putInsights.results.filter((one) => one.code != null);
    setRefused(failed);
    onSent();
    if (failed.length === 0) onClear();
  };
  return (
    <form className="send" aria-label="Send an insight" onSubmit={(event) => void submit(event)}>
      <label htmlFor="insight">Insight to {receivers.length === 1 ? receivers[0]?.label : plural(receivers.length, "session")}</label>
      <textarea id="insight" rows={2} value={content} onChange={(event) => setContent(event.target.value)} />
      <div className="actions">
        <button type="submit" className="primary" disabled={fetching || content.trim() === ""}>
          Send
        </button>
        <div className="choices" role="group" aria-label="What to do with a waiting insight">
          {(["REPLACE", "APPEND"] as const).map((one) => (
            <button key={one} type="button" aria-pressed={mode === one} onClick={() => setMode(one)}>
              {one === "REPLACE" ? "replace" : "append"}
            </button>
          ))}
        </div>
        <button type="button" className="plain" onClick={onClear}>
          Clear choice
        </button>
      </div>
      <Problem error={problem ?? error} />
      {refused.map((one) => (
        <p key={one.sessionId} className="problem" role="alert">
          {receivers.find(({ id }) => id === one.sessionId)?.label ?? one.sessionId}: {one.message}
        </p>
      ))}
    </form>
  );
}
