/** One run: a timeline of its steps and tool calls, what each said, and feedback on the whole. */

import { useState, type SubmitEvent } from "react";
import { useMutation } from "urql";
import { useForest } from "../forest/live";
import { useFollow, useFresh, useSoon } from "../follow";
import { count, duration, isCut, moment, plural, shown } from "../format";
import { RunDetailDocument, RunEventsDocument, SetRunFeedbackDocument } from "../gql/graphql";
import { Problem } from "../problem";
import { hrefOf } from "../route";
import { Status } from "./list";
import { ticksOf, timelineOf, type Bar, type Run } from "./timeline";

export function RunPage({ sessionId, turnId }: { sessionId: string; turnId: string }) {
  const { data, error, again } = useFresh(RunDetailDocument, { sessionId, turnId });
  const label = useForest().forest?.get(sessionId)?.label ?? sessionId;
  const reread = useSoon(() => again(), 300);
  useFollow(
    RunEventsDocument,
    "run",
    () => ({}),
    (arrived) => {
      if (arrived.some((data) => data.spaceEvents.sessionId === sessionId)) reread();
    },
  );
  const run = data?.run;
  return (
    <main className="page">
      <header className="head">
        <nav className="crumbs" aria-label="Where this run is">
          <a href={hrefOf.runs()}>Runs</a>
          <a href={hrefOf.session(sessionId)}>{label}</a>
        </nav>
        <h1>{run?.query?.trim() ? run.query : "Run"}</h1>
        {run ? (
          <p className="facts">
            <Status status={run.status} />
            <span>{moment(run.startedAt)}</span>
            <span>{duration(run.totalDurationMs)}</span>
            <span>{plural(run.stepCount, "step")}</span>
            <span>{plural(run.toolCallCount, "call")}</span>
            <span>{count(run.totalTokenCount)} tokens</span>
            {run.agentFlow == null ? null : <span>{run.agentFlow}</span>}
            {run.inherited ? <span className="tag">inherited</span> : null}
          </p>
        ) : null}
      </header>
      <Problem error={error} />
      {data === undefined ? null : run == null ? (
        <p className="quiet">There is no such run, or not any more.</p>
      ) : (
        <>
          {run.error == null ? null : <p className="problem">{run.error}</p>}
          <Picture run={run} />
          <Feedback key={run.feedback} run={run} />
        </>
      )}
    </main>
  );
}

function Picture({ run }: { run: Run }) {
  const [chosen, setChosen] = useState<string>();
  const { bars, span } = timelineOf(run, Date.parse(run.updatedAt));
  const percent = (ms: number) => `${(100 * ms) / span}%`;
  const bar = bars.find(({ key }) => key === chosen);
  return (
    <section className="timeline" aria-label="Timeline">
      <div className="axis" aria-hidden="true">
        {ticksOf(span).map((tick) => (
          <span key={tick} style={{ left: percent(tick) }}>
            {duration(tick)}
          </span>
        ))}
      </div>
      <ul>
        {bars.map((one) => (
          <li key={one.key} data-kind={one.kind}>
            <button
              type="button"
              aria-pressed={one.key === chosen}
              onClick={() => setChosen(one.key === chosen ? undefined : one.key)}
            >
              <span className="label">
                {one.label}
                {one.failed ? <span className="fault"> failed</span> : null}
              </span>
              <span className="lane">
                <span
                  className="piece"
                  data-failed={one.failed}
                  data-open={one.length === null}
                  style={{ left: percent(one.start), width: percent(one.length ?? span - one.start) }}
                />
              </span>
              <span className="meta">{measureOf(one)}</span>
            </button>
            {one === bar ? <Detail bar={one} /> : null}
          </li>
        ))}
      </ul>
      {bars.length === 0 ? <p className="quiet">No step was recorded.</p> : null}
    </section>
  );
}

function measureOf({ of, length }: Bar): string {
  const time = length === null ? "no end" : duration(length);
  return "tokenCount" in of && of.tokenCount != null ? `${time} · ${count(of.tokenCount)} tokens` : time;
}

function Detail({ bar: { of } }: { bar: Bar }) {
  if ("stepIndex" in of) {
    return (
      <div className="detail">
        {of.error == null ? null : <p className="problem">{of.error}</p>}
        <p>{of.thought ?? "No thought was recorded."}</p>
      </div>
    );
  }
  return (
    <div className="detail">
      {of.errorMessage == null ? null : <p className="problem">{of.errorMessage}</p>}
      <pre tabIndex={0} aria-label="Arguments">{shown(of.inputParams)}</pre>
      {of.outputPreview ? (
        <pre tabIndex={0} aria-label="Output">
          {of.outputPreview}
          {isCut(of) ? ` … (${count(of.outputLength ?? 0)} characters in all)` : ""}
        </pre>
      ) : null}
    </div>
  );
}

function Feedback({ run }: { run: Run }) {
  const [{ fetching, error }, set] = useMutation(SetRunFeedbackDocument);
  const [feedback, setFeedback] = useState(run.feedback ?? "");
  const save = (event: SubmitEvent) => {
    event.preventDefault();
    void set({ sessionId: run.sessionId, turnId: run.turnId, feedback });
  };
  return (
    <form className="feedback" onSubmit={save}>
      <label htmlFor="feedback">Feedback on this run</label>
      <textarea id="feedback" rows={2} value={feedback} onChange={(event) => setFeedback(event.target.value)} />
      <button type="submit" className="primary" disabled={fetching || feedback === (run.feedback ?? "")}>
        Save
      </button>
      <Problem error={error} />
    </form>
  );
}
