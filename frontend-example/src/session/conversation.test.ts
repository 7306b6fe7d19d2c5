import { expect, test } from "vitest";
import { needsAnswer, partsOf, withLive, type Entry, type LogEvent } from "./conversation";

type Given<Name extends LogEvent["__typename"]> = Partial<Extract<LogEvent, { __typename: Name }>>;

function event<Name extends LogEvent["__typename"]>(__typename: Name, seq: number, given: Given<Name> = {}): LogEvent {
  const common = { id: `log/${seq}`, sessionId: "s", timestamp: "2026-11-30T00:00:00.000Z", turnId: "t", stepId: "1" };
  const defaults = { surfaceOp: { __typename: "SurfaceOp", op: "APPEND" }, interrupted: false, kind: "TEXT" };
  return { __typename, type: "CUSTOM", seq, ...common, ...defaults, ...given } as unknown as LogEvent;
}

const chunk = (seq: number, delta: string) => event("AssistantChunk", seq, { delta });
const texts = (entries: readonly Entry[]) =>
  entries.map((entry) => (entry.__typename === "TextEntry" ? entry.content + (entry.partial ? " …" : "") : "?"));

test("an answer grows chunk by chunk, and the whole message takes its place", () => {
  const events = [event("UserMessage", 0, { content: "Hi" }), chunk(1, "Good "), chunk(2, "day")];
  expect(texts(withLive([], 0, events))).toEqual(["Hi", "Good day …"]);
  const whole = [...events, event("AssistantMessage", 3, { content: "Good day!" })];
  expect(texts(withLive([], 0, whole))).toEqual(["Hi", "Good day!"]);
});

test("chunks go on where the server's answer ended", () => {
  const begun = withLive([], 0, [chunk(0, "Good ")]);
  expect(texts(withLive(begun, 1, [chunk(0, "Good "), chunk(1, "day")]))).toEqual(["Good day …"]);
});

test("events that the server has told of already are not laid over it again", () => {
  const told = withLive([], 0, [event("UserMessage", 0, { content: "Hi" })]);
  expect(withLive(told, 1, [event("UserMessage", 0, { content: "Hi" })])).toBe(told);
});

test("reasoning is no part of the text, and an interrupted answer stays unfinished", () => {
  const events = [
    event("AssistantChunk", 0, { delta: "hm", kind: "REASONING" }),
    event("AssistantMessage", 1, { content: "So", interrupted: true }),
  ];
  expect(texts(withLive([], 0, events))).toEqual(["So …"]);
});

test("a result answers the earliest open call with its id", () => {
  const events = [
    event("ToolCall", 0, { callId: "c", name: "look", args: {} }),
    event("ToolCall", 1, { callId: "c", name: "look", args: {} }),
    event("ToolResult", 2, { callId: "c", result: { found: 1 } }),
    event("ToolResult", 3, { callId: "c", error: "gone" }),
    event("ToolResult", 4, { callId: "unknown", result: 1 }),
  ];
  const calls = withLive([], 0, events).filter((entry) => entry.__typename === "ToolEntry");
  expect(calls.map((call) => [call.invocation.success, call.invocation.outputPreview])).toEqual([
    [true, '{"found":1}'],
    [false, ""],
  ]);
});

test("what only the server can fold asks for its answer", () => {
  expect(needsAnswer(event("CardEvent", 0))).toBe(true);
  expect(needsAnswer(event("SurfaceHide", 0))).toBe(true);
  const surfaceOp = { __typename: "SurfaceOp", op: "REPLACE" } as const;
  expect(needsAnswer(event("UserMessage", 0, { content: "new", surfaceOp }))).toBe(true);
  expect(needsAnswer(event("UserMessage", 0, { content: "new" }))).toBe(false);
  expect(withLive([], 0, [event("AssistantMessage", 0, { content: "summary", surfaceOp })])).toEqual([]);
});

test("calls of one step in a row are one part", () => {
  const call = (seq: number, stepId: string) => event("ToolCall", seq, { callId: `${seq}`, name: "x", args: {}, stepId });
  const events = [call(0, "1"), call(1, "1"), event("UserMessage", 2, { content: "Go on" }), call(3, "1"), call(4, "2")];
  const parts = partsOf(withLive([], 0, events));
  expect(parts.map((part) => (part.kind === "tools" ? part.calls.length : part.entry.seq))).toEqual([2, 2, 1, 1]);
});
