/** Runs: those of the space with filters, and those of one session. */

import { useEffect, useState } from "react";
import { useClient } from "urql";
import { useForest } from "../forest/live";
import { useFollow, useFresh, useSoon } from "../follow";
import { count, duration, moment, plural } from "../format";
import {
  RunEventsDocument,
  RunListDocument,
  SessionRunsDocument,
  type RunListQueryVariables,
  type RunSummaryFragment,
} from "../gql/graphql";
import { Problem } from "../problem";
import { hrefOf } from "../route";

type Filters = Omit<RunListQueryVariables, "after">;
type Page = readonly RunSummaryFragment[];

const STATUSES = ["PENDING", "RUNNING", "SUCCESS", "FAILED"] as const;
const TEXTS = [
  ["agentFlow", "Flow"],
  ["agentName", "Agent"],
  ["toolName", "Tool"],
  ["feedback", "Feedback"],
] as const;

export function RunsPage() {
  const client = useClient();
  const [filters, setFilters] = useState<Filters>({});
  const { data, error, again } = useFresh(RunListDocument, filters);
  const [more, setMore] = useState<{ runs: Page; after: string | null }>();
  useFollow(
    RunEventsDocument,
    "runs",
    () => ({}),
    useSoon(() => again(), 500),
  );
  const change = (given: Filters) => {
    setFilters(Object.fromEntries(Object.entries({ ...filters, ...given }).filter(([, value]: [string, unknown]) => value !== undefined)));
    setMore(undefined);
  };
  const after = more === undefined ? (data?.runs?.pageInfo.hasNextPage ? data.runs.pageInfo.endCursor : null) : more.after;
  const loadMore = async () => {
    const result = await client.query(RunListDocument, { ...filters, after }, { requestPolicy: "network-only" });
    const page = result.data?.runs;
    if (!page) return;
    const next = page.pageInfo.hasNextPage ? (page.pageInfo.endCursor ?? null) : null;
    setMore({ runs: [...(more?.runs ?? []), ...page.nodes], after: next });
  };
  const first = data?.runs?.nodes;
  const known = new Set(first?.map((run) => run.id));
  const runs = first && [...first, ...(more?.runs ?? []).filter((run) => !known.has(run.id))];
  return (
    <main className="page">
      <header className="head">
        <h1>Runs</h1>
        <p className="quiet">Every turn is a run. Newest first.</p>
      </header>
      <FilterBar filters={filters} onChange={change} />
      <Problem error={error} />
      {runs === undefined ? <p className="quiet">Reading …</p> : <RunTable runs={runs} withSession />}
      {after == null ? null : (
        <button type="button" className="more" onClick={() => void loadMore()}>
          Show more
        </button>
      )}
    </main>
  );
}

function FilterBar({ filters, onChange }: { filters: Filters; onChange: (given: Filters) => void }) {
  return (
    <form className="filters of-runs" role="search" aria-label="Filter runs" onSubmit={(event) => event.preventDefault()}>
      <div className="choices" role="group" aria-label="Status">
        {STATUSES.map((status) => (
          <button
            key={status}
            type="button"
            aria-pressed={filters.status === status}
            data-status={status}
            onClick={() => onChange({ status: filters.status === status ? undefined : status })}
          >
            {status.toLowerCase()}
          </button>
        ))}
      </div>
      {TEXTS.map(([name, label]) => (
        <Later key={name} label={label} onChange={(value) => onChange({ [name]: value === "" ? undefined : value })} />
      ))}
      <Later
        label="Longer than, s"
        kind="number"
        onChange={(value) => onChange({ minDurationMs: value === "" ? undefined : Number(value) * 1_000 })}
      />
      <Later label="From" kind="date" onChange={(value) => onChange({ startedAfter: midnight(value) })} />
      <Later label="Until" kind="date" onChange={(value) => onChange({ startedBefore: midnight(value, 1) })} />
    </form>
  );
}

function midnight(date: string, later = 0): string | undefined {
  if (date === "") return undefined;
  const [year = 0, month = 1, day = 1] = date.split("-").map(Number);
  return new Date(year, month - 1, day + later).toISOString();
}

/** A field that tells its value once the writer pauses. */
function Later({ label, kind = "text", onChange }: { label: string; kind?: string; onChange: (value: string) => void }) {
  const [value, setValue] = useState("");
  const tell = useSoon(() => onChange(value), 300);
  return (
    <label className="field">
      <span>{label}</span>
      <input
        type={kind}
        min={kind === "number" ? 0 : undefined}
        value={value}
        onChange={(event) => {
          setValue(event.target.value);
          tell();
        }}
      />
    </label>
  );
}

export function SessionRuns({ id, head }: { id: string; head: number }) {
  const { data, error, again } = useFresh(SessionRunsDocument, { id });
  useEffect(() => {
    const timer = setTimeout(again, 400);
    return () => clearTimeout(timer);
  }, [head, again]);
  const runs = data?.session?.runs;
  return (
    <>
      <Problem error={error} />
      {runs === undefined ? <p className="quiet">Reading …</p> : <RunTable runs={runs} />}
    </>
  );
}

function RunTable({ runs, withSession = false }: { runs: Page; withSession?: boolean }) {
  const { forest } = useForest();
  if (runs.length === 0) return <p className="quiet">No run matches.</p>;
  return (
    <ul className="runs" aria-label="Runs">
      {runs.map((run) => (
        <li key={run.id}>
          <a href={hrefOf.run(run.sessionId, run.turnId)}>
            <Status status={run.status} />
            <span className="query">{run.query?.trim() ? run.query : run.turnId}</span>
            <span className="meta">
              {withSession ? <b>{forest?.get(run.sessionId)?.label ?? run.sessionId}</b> : null}
              <span>{moment(run.startedAt)}</span>
              <span>{duration(run.totalDurationMs)}</span>
              <span>{plural(run.stepCount, "step")}</span>
              <span>{plural(run.toolCallCount, "call")}</span>
              {run.totalTokenCount > 0 ? <span>{count(run.totalTokenCount)} tokens</span> : null}
              {run.agentFlow == null ? null : <span>{run.agentFlow}</span>}
              {run.inherited ? <span className="tag">inherited</span> : null}
            </span>
            {run.error == null ? null : <span className="fault">{run.error}</span>}
          </a>
        </li>
      ))}
    </ul>
  );
}

export function Status({ status }: { status: RunSummaryFragment["status"] }) {
  return (
    <span className="status" data-status={status}>
      {status.toLowerCase()}
    </span>
  );
}
