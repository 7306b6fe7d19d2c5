/**
 * A conversation between two answers of the server.
 *
 * The server folds the log into entries. What arrives live is laid over its last answer by the simple rules here; what
 * they can't do (a card's YAML, a hide, a replacement) is asked for again, and the next answer puts all of it right.
 */

import { codePoints } from "../format";
import type { EntryFragment, LogEventFragment } from "../gql/graphql";

export type Entry = EntryFragment;
export type LogEvent = LogEventFragment;
export type TextEntry = Extract<Entry, { __typename: "TextEntry" }>;
export type ToolEntry = Extract<Entry, { __typename: "ToolEntry" }>;
export type CardEntry = Extract<Entry, { __typename: "CardEntry" }>;

/** Whether an event is one after which the server should be asked for the conversation again. */
export function needsAnswer(event: LogEvent): boolean {
  switch (event.__typename) {
    case "CardEvent":
    case "SurfaceHide":
    case "StepEnd":
    case "TurnEnd":
    case "InsightDelivered":
      return true;
    case "UserMessage":
    case "AssistantMessage":
    case "SystemMessage":
      return event.surfaceOp.op === "REPLACE";
    default:
      return false;
  }
}

/** The server's entries, which know of the events before `nextSeq`, with the later of the events laid over them. */
export function withLive(entries: readonly Entry[], nextSeq: number, events: readonly LogEvent[]): readonly Entry[] {
  const later = events.filter((event) => event.seq >= nextSeq);
  if (later.length === 0) return entries;
  const shown = [...entries];
  for (const event of later) lay(shown, event);
  return shown;
}

function lay(entries: Entry[], event: LogEvent) {
  const { seq, timestamp, turnId, stepId } = event;
  const place = { seq, timestamp, turnId, stepId };
  const streaming = streamingOf(entries, event);
  switch (event.__typename) {
    case "AssistantChunk":
      if (event.kind !== "TEXT") return;
      if (streaming !== undefined) {
        entries[entries.lastIndexOf(streaming)] = { ...streaming, content: streaming.content + event.delta };
      } else {
        entries.push({ __typename: "TextEntry", ...place, role: "ASSISTANT", content: event.delta, partial: true });
      }
      return;
    case "AssistantMessage":
      if (event.surfaceOp.op === "REPLACE") return;
      // The whole text takes the place of its pieces.
      if (streaming !== undefined) entries.splice(entries.lastIndexOf(streaming), 1);
      if (event.content === "") return;
      entries.push({
        ...{ __typename: "TextEntry", ...place, role: "ASSISTANT" },
        ...{ content: event.content, partial: event.interrupted },
      });
      return;
    case "UserMessage":
      if (event.surfaceOp.op === "REPLACE") return;
      entries.push({ __typename: "TextEntry", ...place, role: "USER", content: event.content, partial: false });
      return;
    case "ToolCall":
      entries.push({ __typename: "ToolEntry", ...place, invocation: called(event) });
      return;
    case "ToolResult": {
      const at = entries.findIndex((entry) => isUnanswered(entry, event.callId));
      const entry = entries[at];
      if (entry?.__typename !== "ToolEntry") return;
      entries[at] = { ...entry, invocation: { ...entry.invocation, ...answered(event) } };
    }
  }
}

/** The answer that is being streamed when an event comes: the last text, if it is a part and of the same step. */
function streamingOf(entries: readonly Entry[], event: LogEvent): TextEntry | undefined {
  const last = entries.findLast((entry) => entry.__typename === "TextEntry");
  if (last?.__typename !== "TextEntry" || !last.partial || last.role !== "ASSISTANT") return undefined;
  return last.turnId === event.turnId && last.stepId === event.stepId ? last : undefined;
}

const isUnanswered = (entry: Entry, callId: string) =>
  entry.__typename === "ToolEntry" && entry.invocation.callId === callId && entry.invocation.success === null;

function called(event: Extract<LogEvent, { __typename: "ToolCall" }>): ToolEntry["invocation"] {
  return {
    ...{ __typename: "ToolInvocation", callId: event.callId, toolName: event.name, inputParams: event.args },
    ...{ outputPreview: null, outputLength: null, isTruncated: false, durationMs: null, success: null, errorMessage: null },
  };
}

const PREVIEW = 500;

function answered(event: Extract<LogEvent, { __typename: "ToolResult" }>) {
  const whole = event.result == null ? "" : typeof event.result === "string" ? event.result : JSON.stringify(event.result);
  return {
    outputPreview: Array.from(whole.slice(0, 2 * PREVIEW)).slice(0, PREVIEW).join(""),
    ...{ outputLength: codePoints(whole), isTruncated: false },
    ...{ durationMs: event.durationMs ?? null, success: event.error == null, errorMessage: event.error ?? null },
  };
}

/** What stands on its own in a conversation, and the tool calls that one step made in a row. */
export type Part = { kind: "entry"; entry: Exclude<Entry, ToolEntry> } | { kind: "tools"; calls: ToolEntry[] };

export function partsOf(entries: readonly Entry[]): Part[] {
  const parts: Part[] = [];
  for (const entry of entries) {
    const last = parts.at(-1);
    if (entry.__typename !== "ToolEntry") parts.push({ kind: "entry", entry });
    else if (last?.kind === "tools" && sameStep(last.calls[0], entry)) last.calls.push(entry);
    else parts.push({ kind: "tools", calls: [entry] });
  }
  return parts;
}

const sameStep = (a: ToolEntry | undefined, b: ToolEntry) => a?.turnId === b.turnId && a.stepId === b.stepId;
