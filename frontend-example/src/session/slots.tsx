/** The three slots of a session: what each is for, what it holds, and writing it. */

import type { CombinedError } from "@urql/core";
import { useState, type SubmitEvent } from "react";
import { useMutation } from "urql";
import { useFollow, useFresh } from "../follow";
import { ago, plural } from "../format";
import {
  PutInsightDocument,
  PutMemoryDocument,
  PutSystemPromptDocument,
  SlotChangesDocument,
  SlotsDocument,
  type SessionSlotsFragment,
} from "../gql/graphql";
import { Problem } from "../problem";

type Slot = NonNullable<SessionSlotsFragment["memory"]>;

export function Slots({ id, writable, head }: { id: string; writable: boolean; head: number }) {
  const { data, error, again } = useFresh(SlotsDocument, { id });
  useFollow(
    SlotChangesDocument,
    id,
    () => ({ id }),
    () => again(),
  );
  const [prompt, putPrompt] = useMutation(PutSystemPromptDocument);
  const [insight, putInsight] = useMutation(PutInsightDocument);
  const [memory, putMemory] = useMutation(PutMemoryDocument);
  const slots = data?.session;
  return (
    <aside className="slots" aria-label="Slots">
      <Problem error={error} />
      <SlotCard
        {...{ name: "System prompt", purpose: "Goes into every send.", slot: slots?.systemPrompt, writable }}
        error={prompt.error}
        onPut={(content, ifVersion) => putPrompt({ id, content, ifVersion }).then((result) => !result.error)}
      />
      <SlotCard
        {...{ name: "Insight", purpose: "An inbox for the next send, read once.", slot: slots?.insight, writable }}
        error={insight.error}
        onPut={(content, ifVersion) =>
          putInsight({ input: { sessionId: id, content, ifVersion } }).then((result) => !result.error)
        }
      />
      <SlotCard
        {...{ name: "Memory", purpose: "For orchestrators; no model sees it.", slot: slots?.memory, writable, head }}
        error={memory.error}
        onPut={(content, ifVersion) =>
          putMemory({ input: { sessionId: id, content, ifVersion } }).then((result) => !result.error)
        }
      />
    </aside>
  );
}

interface CardProps {
  name: string;
  purpose: string;
  slot: Slot | null | undefined;
  writable: boolean;
  /** Given where it matters how much has happened since. */
  head?: number;
  error: CombinedError | undefined;
  /** Whether it was written. `ifVersion` is the version that the writer has seen. */
  onPut: (content: string, ifVersion: number | undefined) => Promise<boolean>;
}

function SlotCard({ name, purpose, slot, writable, head, error, onPut }: CardProps) {
  const [draft, setDraft] = useState<{ content: string; seen: number | undefined }>();
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    if (draft !== undefined && (await onPut(draft.content, draft.seen))) setDraft(undefined);
  };
  return (
    <section className="slot">
      <header>
        <h3>{name}</h3>
        {slot == null ? null : <span className="meta">v{slot.version}</span>}
      </header>
      <p className="purpose">{purpose}</p>
      {draft === undefined ? (
        <>
          {slot == null ? <p className="quiet">Empty</p> : <p className="said">{slot.content}</p>}
          {slot == null ? null : (
            <p className="meta">
              {ago(slot.updatedAt)}
              {head === undefined ? "" : slot.atSeq < head ? `, ${plural(head - slot.atSeq, "event")} behind` : ", up to date"}
            </p>
          )}
          {writable ? (
            <button
              type="button"
              className="link"
              aria-label={`Write ${name.toLowerCase()}`}
              onClick={() => setDraft({ content: slot?.content ?? "", seen: slot?.version })}
            >
              Write
            </button>
          ) : null}
        </>
      ) : (
        <form onSubmit={(event) => void save(event)}>
          <textarea
            aria-label={name}
            rows={5}
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
        </form>
      )}
      <Problem error={error} />
    </section>
  );
}
