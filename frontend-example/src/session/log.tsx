/** The raw log: every event, newest last, older ones page by page. */

import { useEffect, useEffectEvent } from "react";
import { clock } from "../format";
import type { LogEvent } from "./conversation";
import type { useLiveSession } from "./live";

type Live = ReturnType<typeof useLiveSession>;

export function LogTab({ known, loadLog }: { known: NonNullable<Live["known"]>; loadLog: Live["loadLog"] }) {
  const { events, eventsBefore, followedFrom, session } = known;
  const nothingRead = eventsBefore === followedFrom;
  const begin = useEffectEvent(loadLog);
  useEffect(() => {
    if (nothingRead) void begin();
  }, [nothingRead]);
  return (
    <div className="log">
      {eventsBefore === null || nothingRead ? null : (
        <button type="button" className="more" onClick={() => void loadLog()}>
          Show earlier
        </button>
      )}
      <ol aria-label="Events">
        {events.map((event) => (
          <li key={event.seq}>
            <details>
              <summary>
                <span className="seq">{event.seq}</span>
                <span className="type">{wireName(event.type)}</span>
                <span className="gist">{gistOf(event)}</span>
                {event.sessionId === session.id ? null : <span className="tag">inherited</span>}
                <time dateTime={event.timestamp}>{clock(event.timestamp)}</time>
              </summary>
              <pre tabIndex={0} aria-label={`Event ${event.seq}`}>{JSON.stringify(fieldsOf(event), null, 2)}</pre>
            </details>
          </li>
        ))}
      </ol>
      {events.length === 0 && eventsBefore === null ? <p className="quiet">No event yet.</p> : null}
    </div>
  );
}

/** USER_MESSAGE is spelled user/message in logs. */
const wireName = (type: string) => type.toLowerCase().replace("_", "/");

function gistOf(event: LogEvent): string {
  switch (event.__typename) {
    case "TurnStart":
      return event.query ?? event.turnId ?? "";
    case "TurnEnd":
      return event.error ?? event.status.toLowerCase();
    case "StepStart":
      return event.agentName ?? "";
    case "StepEnd":
      return event.error ?? event.thought ?? "";
    case "AssistantChunk":
      return event.delta;
    case "ToolCall":
      return `${event.name} ${typeof event.args === "string" ? event.args : JSON.stringify(event.args)}`;
    case "ToolResult":
      return event.error ?? (event.result == null ? "" : JSON.stringify(event.result));
    case "CardEvent":
      return event.cardType;
    case "SurfaceHide":
      return `${event.fromSeq} to ${event.toSeq}`;
    case "RunFeedback":
      return event.feedback ?? "";
    case "CustomEvent":
      return event.name;
    default:
      return event.content;
  }
}

function fieldsOf(event: LogEvent) {
  return Object.fromEntries(
    Object.entries(event).filter(([name, value]) => name !== "__typename" && name !== "seq" && value !== null),
  );
}
