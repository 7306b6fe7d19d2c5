import { expect, test } from "vitest";
import { ticksOf, timelineOf, type Call, type Run, type Step } from "./timeline";

const at = (ms: number) => new Date(Date.UTC(2026, 10, 30) + ms).toISOString();
const step = (stepId: string, from: number, to: number | null, durationMs: number | null = null): Step =>
  ({ stepId, startedAt: at(from), endedAt: to === null ? null : at(to), durationMs, error: null }) as Step;
const call = (callId: string, stepId: string | null, from: number, to: number | null): Call =>
  ({ callId, stepId, toolName: callId, startedAt: at(from), endedAt: to === null ? null : at(to), success: true }) as Call;
const run = (steps: Step[], toolInvocations: Call[], given: Partial<Run> = {}): Run =>
  ({ startedAt: at(0), endedAt: at(10_000), status: "SUCCESS", steps, toolInvocations, ...given }) as Run;
const told = (timeline: ReturnType<typeof timelineOf>) =>
  timeline.bars.map(({ of, start, length }) => ["callId" in of ? of.callId : of.stepId, start, length]);

test("each step is followed by its calls, and a call of no step stands where it began", () => {
  const steps = [step("one", 100, 4_000), step("two", 5_000, 9_000)];
  const calls = [call("a", "one", 200, 900), call("b", null, 4_500, 4_600), call("c", "two", 6_000, 7_000)];
  expect(told(timelineOf(run(steps, calls), 0))).toEqual([
    ["one", 100, 3_900],
    ["a", 200, 700],
    ["b", 4_500, 100],
    ["two", 5_000, 4_000],
    ["c", 6_000, 1_000],
  ]);
});

test("a recorded duration counts, and ends where the end was recorded", () => {
  expect(told(timelineOf(run([step("one", 1_000, 5_000, 3_000)], []), 0))).toEqual([["one", 2_000, 3_000]]);
});

test("what goes on has no length yet, and the picture reaches to now", () => {
  const going = run([step("one", 1_000, null)], [], { status: "RUNNING", endedAt: null });
  const timeline = timelineOf(going, Date.parse(at(20_000)));
  expect(told(timeline)).toEqual([["one", 1_000, null]]);
  expect(timeline.span).toBe(20_000);
});

test("a clock that ran backwards puts nothing before the start, and no span is empty", () => {
  expect(told(timelineOf(run([step("one", -500, -400)], []), 0))[0]?.[1]).toBe(0);
  expect(timelineOf(run([], [], { endedAt: at(0) }), 0).span).toBe(1);
});

test("marks are round and few", () => {
  expect(ticksOf(8_190)).toEqual([0, 2_000, 4_000, 6_000, 8_000]);
  for (const span of [1, 7, 850, 12_345, 10 ** 9]) {
    expect(ticksOf(span).length).toBeLessThanOrEqual(7);
    expect(ticksOf(span).at(-1)).toBeLessThanOrEqual(span);
  }
});
