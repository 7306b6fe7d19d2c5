/** The conversation: texts, cards, and tool calls folded under the step that made them. */

import { useEffect, useMemo, useRef, useState } from "react";
import { useMutation } from "urql";
import { clock, count, duration, isCut, plural, shown } from "../format";
import { AppendEventsDocument, ForkSessionDocument } from "../gql/graphql";
import { Problem } from "../problem";
import { go, hrefOf } from "../route";
import { Card } from "./cards";
import { partsOf, withLive, type Entry, type ToolEntry } from "./conversation";
import type { SessionAnswer, useLiveSession } from "./live";
import { Prose } from "./prose";

type Live = ReturnType<typeof useLiveSession>;
type Known = NonNullable<Live["known"]>;
type Step = SessionAnswer["runs"][number]["steps"][number];

export function Talk({ known, loadEarlier }: { known: Known; loadEarlier: Live["loadEarlier"] }) {
  const { session, earlier, events } = known;
  const entries = useMemo(
    () => [...earlier, ...withLive(session.conversation.entries, session.conversation.nextSeq, events)],
    [earlier, session, events],
  );
  const steps = useMemo(() => stepsOf(session), [session]);
  const end = useStayAtEnd(entries);
  return (
    <div className="talk">
      {known.earlierThan === null ? null : (
        <button type="button" className="more" onClick={() => void loadEarlier()}>
          Show earlier
        </button>
      )}
      {entries.length === 0 ? <p className="quiet">Nothing has been said yet.</p> : null}
      <ol className="entries" aria-label="Conversation">
        {partsOf(entries).map((part) =>
          part.kind === "tools" ? (
            <li key={part.calls[0]?.seq} className="entry">
              <Tools calls={part.calls} step={steps.get(stepKey(part.calls[0]))} />
            </li>
          ) : (
            <li key={part.entry.seq} className="entry" data-role={roleOf(part.entry)}>
              <Said entry={part.entry} sessionId={session.id} />
              {part.entry.__typename === "TextEntry" && part.entry.partial ? null : (
                <ForkHere sessionId={session.id} atSeq={part.entry.seq + 1} />
              )}
            </li>
          ),
        )}
      </ol>
      {session.status === "ACTIVE" ? (
        <Compose sessionId={session.id} />
      ) : (
        <p className="note">Archived: it can be read and forked, and written to once it is restored.</p>
      )}
      <div ref={end} />
    </div>
  );
}

const roleOf = (entry: Entry) => (entry.__typename === "TextEntry" ? entry.role : "CARD");
const stepKey = (call: { turnId?: string | null; stepId?: string | null } | undefined) =>
  `${call?.turnId ?? ""}\n${call?.stepId ?? ""}`;

function stepsOf(session: SessionAnswer): Map<string, Step> {
  return new Map(
    session.runs.flatMap(({ turnId, steps }) => steps.map((step) => [stepKey({ turnId, stepId: step.stepId }), step])),
  );
}

function Said({ entry, sessionId }: { entry: Exclude<Entry, ToolEntry>; sessionId: string }) {
  switch (entry.__typename) {
    case "TextEntry":
      return (
        <article aria-busy={entry.partial}>
          <p className="who">
            {WHO[entry.role]} <time dateTime={entry.timestamp}>{clock(entry.timestamp)}</time>
          </p>
          <Prose text={entry.content} />
          {entry.partial ? (
            <span className="typing" role="img" aria-label="unfinished">
              <i />
              <i />
              <i />
            </span>
          ) : null}
        </article>
      );
    case "CardEntry":
      return <Card entry={entry} sessionId={sessionId} />;
    case "PlaceholderEntry":
      return (
        <section className="card broken" aria-label="Card that can’t be shown">
          <p>{entry.text}</p>
          <p className="note">{entry.reason}</p>
        </section>
      );
  }
}

const WHO = { USER: "User", ASSISTANT: "Assistant", SYSTEM: "System", TOOL: "Tool" };

function Tools({ calls, step }: { calls: ToolEntry[]; step: Step | undefined }) {
  const failed = calls.filter((call) => call.invocation.success === false).length;
  const running = calls.some((call) => call.invocation.success == null);
  const names = [...new Set(calls.map((call) => call.invocation.toolName))];
  return (
    <details className="tools" data-failed={failed > 0}>
      <summary>
        <strong>{step?.agentName ?? "Step"}</strong>
        <span className="names">{names.join(", ")}</span>
        <span className="meta">
          {running ? "running …" : plural(calls.length, "call")}
          {failed > 0 ? ` · ${failed} failed` : ""}
          {step?.durationMs == null ? "" : ` · ${duration(step.durationMs)}`}
          {step?.tokenCount == null ? "" : ` · ${count(step.tokenCount)} tokens`}
        </span>
      </summary>
      {step?.thought ? <p className="thought">{step.thought}</p> : null}
      {calls.map(({ seq, invocation }) => (
        <div key={seq} className="call">
          <p>
            <code>{invocation.toolName}</code>
            <span className="meta">{invocation.success == null ? "no result yet" : duration(invocation.durationMs)}</span>
          </p>
          <pre tabIndex={0} aria-label="Arguments">{shown(invocation.inputParams)}</pre>
          {invocation.errorMessage == null ? null : <p className="problem">{invocation.errorMessage}</p>}
          {invocation.outputPreview ? (
            <pre tabIndex={0} aria-label="Output">
              {invocation.outputPreview}
              {isCut(invocation) ? " …" : ""}
            </pre>
          ) : null}
        </div>
      ))}
    </details>
  );
}

/** A fork shares the events before `atSeq`: here, all up to the message and the message itself. */
function ForkHere({ sessionId, atSeq }: { sessionId: string; atSeq: number }) {
  const [{ fetching, error }, fork] = useMutation(ForkSessionDocument);
  const run = async () => {
    const result = await fork({ input: { sourceId: sessionId, atSeq } });
    const made = result.data?.forkSession.session;
    if (made) go(hrefOf.session(made.id));
  };
  return (
    <div className="fork-here">
      <button type="button" disabled={fetching} onClick={() => void run()}>
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path d="M4 2v12M4 9c0-3 8-1 8-5M12 4l-2 2M12 4l2 2" />
        </svg>
        Fork from here
      </button>
      <Problem error={error} />
    </div>
  );
}

/** Appends what is written. The key is the message's own until it is stored: sent twice, it is stored once. */
function Compose({ sessionId }: { sessionId: string }) {
  const [{ fetching, error }, append] = useMutation(AppendEventsDocument);
  const [content, setContent] = useState("");
  const [key, setKey] = useState(() => crypto.randomUUID() as string);
  const send = async (event: { preventDefault: () => void }) => {
    event.preventDefault();
    if (content.trim() === "") return;
    const result = await append({ input: { sessionId, events: [{ userMessage: { content } }], idempotencyKey: key } });
    if (result.error) return;
    setContent("");
    setKey(crypto.randomUUID());
  };
  return (
    <form className="compose" onSubmit={(event) => void send(event)}>
      <label className="unseen" htmlFor="message">
        Message
      </label>
      <textarea
        id="message"
        rows={1}
        value={content}
        placeholder="Append a user message"
        onChange={(event) => {
          setContent(event.target.value);
          if (!fetching) setKey(crypto.randomUUID());
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) void send(event);
        }}
      />
      <button type="submit" className="primary" disabled={fetching || content.trim() === ""}>
        Append
      </button>
      <Problem error={error} />
    </form>
  );
}

/** Keeps the end in view while entries come, if it was in view before. */
function useStayAtEnd(entries: readonly Entry[]) {
  const end = useRef<HTMLDivElement>(null);
  const atEnd = useRef(false);
  useEffect(() => {
    const look = () => {
      if (end.current) atEnd.current = end.current.getBoundingClientRect().top < innerHeight;
    };
    look();
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, []);
  useEffect(() => {
    if (atEnd.current) end.current?.scrollIntoView({ block: "end" });
  }, [entries]);
  return end;
}
