/** One session, live: an answer of the server, and every event since. */

import type { CombinedError } from "@urql/core";
import { useCallback, useEffect, useEffectEvent, useReducer, useState } from "react";
import { useClient } from "urql";
import { useConnection, useFollow, useSoon } from "../follow";
import {
  EarlierEntriesDocument,
  LogPageDocument,
  SessionEventsDocument,
  SessionPageDocument,
  type SessionPageQuery,
} from "../gql/graphql";
import { needsAnswer, type Entry, type LogEvent } from "./conversation";
import { mergeEvents, nextSeq } from "./merge";

const FIRST_ENTRIES = 60;
const MOST_ENTRIES = 1_000;

export type SessionAnswer = NonNullable<SessionPageQuery["session"]>;

interface Known {
  session: SessionAnswer;
  /** Entries of the server: those before its newest answer, read page by page, and its newest answer. */
  earlier: readonly Entry[];
  earlierThan: number | null;
  /** The seq from which on the newest answer knows the conversation. */
  answerFrom: number;
  /** The first seq that was followed live, and every event from there on. */
  followedFrom: number;
  events: readonly LogEvent[];
  /** seq before which older events are to be read; null if there are none. */
  eventsBefore: number | null;
}

type Change =
  | { kind: "answer"; session: SessionAnswer }
  | { kind: "gone" }
  | { kind: "earlier"; before: number; entries: readonly Entry[]; prevSeq: number | null }
  | { kind: "events"; events: readonly LogEvent[] }
  | { kind: "log"; events: readonly LogEvent[]; prevSeq: number | null };

function reduce(known: Known | undefined, change: Change): Known | undefined {
  if (change.kind === "answer") {
    const { session } = change;
    if (known !== undefined) return { ...known, session };
    const { prevSeq, nextSeq: next } = session.conversation;
    return {
      ...{ session, earlier: [], earlierThan: prevSeq ?? null, answerFrom: prevSeq ?? 0 },
      ...{ followedFrom: next, events: [], eventsBefore: next === 0 ? null : next },
    };
  }
  // Whatever comes back under this id is another session, with a log of its own.
  if (known === undefined || change.kind === "gone") return undefined;
  switch (change.kind) {
    case "earlier":
      // Asked twice, as by a double click, the same entries come twice.
      if (known.earlierThan !== change.before) return known;
      return { ...known, earlier: [...change.entries, ...known.earlier], earlierThan: change.prevSeq };
    case "events": {
      const events = mergeEvents(known.events, change.events);
      return events === known.events ? known : { ...known, events };
    }
    case "log":
      return { ...known, events: mergeEvents(known.events, change.events), eventsBefore: change.prevSeq };
  }
}

/** `present`: whether the forest has the session, undefined while nobody knows. */
export function useLiveSession(id: string, present: boolean | undefined) {
  const client = useClient();
  const { times } = useConnection();
  const [known, dispatch] = useReducer(reduce, undefined);
  const [error, setError] = useState<CombinedError>();
  const [missing, setMissing] = useState(false);
  const answerFrom = known?.answerFrom;

  const load = () => {
    const range = answerFrom === undefined ? { last: FIRST_ENTRIES } : { fromSeq: answerFrom, first: MOST_ENTRIES };
    void client.query(SessionPageDocument, { id, ...range }, { requestPolicy: "network-only" }).then((result) => {
      setError(result.error);
      if (result.data) setMissing(result.data.session == null);
      if (result.data?.session) dispatch({ kind: "answer", session: result.data.session });
      else if (result.data) dispatch({ kind: "gone" });
    });
  };
  const loadNow = useEffectEvent(load);
  // At first, and again after each lost connection.
  useEffect(() => loadNow(), [times]);

  const reload = useSoon(load);
  // The forest is the first to know that a session was deleted, or is back; the server has the last word.
  const doubtful = (known !== undefined || missing) && present !== undefined && present === missing;
  useEffect(() => {
    if (doubtful) reload();
  }, [doubtful, reload]);
  const followError = useFollow(
    SessionEventsDocument,
    known === undefined ? null : id,
    // Each new connection goes on behind the last event that is here.
    () => ({ id, fromSeq: nextSeq(known?.events ?? [], known?.followedFrom ?? 0) }),
    (arrived) => {
      const events = arrived.map((data) => data.sessionEvents);
      dispatch({ kind: "events", events });
      if (events.some(needsAnswer)) reload();
    },
  );

  const loadEarlier = async () => {
    if (known?.earlierThan == null) return;
    const before = known.earlierThan;
    const result = await client.query(EarlierEntriesDocument, { id, beforeSeq: before });
    setError(result.error);
    const page = result.data?.session?.conversation;
    if (page) dispatch({ kind: "earlier", before, entries: page.entries, prevSeq: page.prevSeq ?? null });
  };
  const eventsBefore = known?.eventsBefore;
  const loadLog = useCallback(async () => {
    if (eventsBefore == null) return;
    const result = await client.query(LogPageDocument, { id, beforeSeq: eventsBefore });
    setError(result.error);
    const page = result.data?.session?.events;
    if (page) dispatch({ kind: "log", events: page.events, prevSeq: page.prevSeq ?? null });
  }, [client, id, eventsBefore]);

  return { known, error: error ?? followError, missing, reload, loadEarlier, loadLog };
}
