/** One run as bars over time. */

import type { RunDetailQuery } from "../gql/graphql";

export type Run = NonNullable<RunDetailQuery["run"]>;
export type Step = Run["steps"][number];
export type Call = Run["toolInvocations"][number];

export interface Bar {
  key: string;
  kind: "step" | "tool";
  label: string;
  /** Milliseconds from the start of the run. */
  start: number;
  /** null while it goes on, or where nobody said how long it took. */
  length: number | null;
  failed: boolean;
  of: Step | Call;
}

export interface Timeline {
  bars: Bar[];
  /** Milliseconds that the picture spans; at least 1. */
  span: number;
}

/** Bars in order of time, each step followed by its tool calls; `now` bounds what still goes on. */
export function timelineOf(run: Run, now: number): Timeline {
  const begin = Date.parse(run.startedAt);
  const timing = (part: { startedAt: string; endedAt?: string | null; durationMs?: number | null }) => {
    // A writer's clock may run backwards: nothing starts before its run.
    const start = Math.max(0, Date.parse(part.startedAt) - begin);
    const until = part.endedAt == null ? null : Math.max(0, Date.parse(part.endedAt) - begin - start);
    // A recorded duration ends where the end was recorded, where both are known.
    const length = part.durationMs ?? until;
    return { start: until !== null && length !== null && length < until ? start + until - length : start, length };
  };
  const stepBar = (step: Step): Bar => ({
    ...{ key: `step ${step.stepId}`, kind: "step", label: step.agentName ?? "step", of: step, ...timing(step) },
    failed: step.error != null,
  });
  const toolBar = (call: Call, index: number): Bar => ({
    ...{ key: `tool ${index} ${call.callId}`, kind: "tool", label: call.toolName, of: call, ...timing(call) },
    failed: call.success === false,
  });
  const tools = run.toolInvocations.map((call, index) => ({ stepId: call.stepId, bar: toolBar(call, index) }));
  const known = new Set(run.steps.map((step) => step.stepId));
  const groups = [
    ...run.steps.map((step) => [
      stepBar(step),
      ...tools.filter(({ stepId }) => stepId === step.stepId).map(({ bar }) => bar),
    ]),
    ...tools.filter(({ stepId }) => stepId == null || !known.has(stepId)).map(({ bar }) => [bar]),
  ];
  groups.sort(([a], [b]) => (a?.start ?? 0) - (b?.start ?? 0));
  const bars = groups.flat();
  const going = run.status === "RUNNING" || run.status === "PENDING";
  const ended = run.endedAt == null ? (run.totalDurationMs ?? 0) : Date.parse(run.endedAt) - begin;
  const ends = bars.map((bar) => bar.start + (bar.length ?? 0));
  return { bars, span: Math.max(1, ended, ...ends, going ? now - begin : 0) };
}

/** Round marks along a span: at most `most` of them, in milliseconds. */
export function ticksOf(span: number, most = 6): number[] {
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power);
  return Array.from({ length: Math.floor(span / step) + 1 }, (_, index) => index * step);
}
