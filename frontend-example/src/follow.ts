/** Hooks that keep a component up to date: one follows a subscription, one asks a query again when there is reason. */

import type { AnyVariables, CombinedError, TypedDocumentNode } from "@urql/core";
import { useCallback, useEffect, useEffectEvent, useRef, useState, useSyncExternalStore } from "react";
import { useClient, useQuery } from "urql";
import { codeOf, connection } from "./client";

const AGAIN_MS = 2_000;
const BURST_MS = 16;
const WORTH_ANOTHER_TRY = new Set([undefined, "UNAVAILABLE", "RATE_LIMITED", "INTERNAL"]);

export const useConnection = () => useSyncExternalStore(connection.subscribe, connection.read);

/**
 * Follows a subscription as long as the component is shown, through lost connections and restarts of the server.
 *
 * `variables` is asked anew at each connection, so that a subscription resumes behind what it has seen. `key` tells one
 * subscription from another: a new one starts when it changes, and none while it is null. What comes
 * within a moment is taken together, so that a burst of events is one change of the page.
 */
export function useFollow<Data, Variables extends AnyVariables>(
  document: TypedDocumentNode<Data, Variables>,
  key: string | null,
  variables: () => Variables,
  take: (data: Data[]) => void,
): CombinedError | undefined {
  const client = useClient();
  const [error, setError] = useState<CombinedError>();
  const variablesNow = useEffectEvent(variables);
  const takeNow = useEffectEvent(take);
  useEffect(() => {
    if (key === null) return;
    let ended = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let unsubscribe: () => void = () => undefined;
    const burst: Data[] = [];
    let burstEnds: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      burstEnds = undefined;
      takeNow(burst.splice(0));
    };
    const begin = () => {
      const context = {
        resume: () => {
          // What has come counts as seen, so that it is not asked for again.
          if (burst.length > 0) flush();
          return variablesNow();
        },
      };
      const source = client.subscription(document, variablesNow(), context);
      const subscription = source.subscribe((result) => {
        if (ended) return;
        setError(result.error);
        if (result.data) {
          burst.push(result.data);
          burstEnds ??= setTimeout(flush, BURST_MS);
        }
        if (result.error && WORTH_ANOTHER_TRY.has(codeOf(result.error))) timer = setTimeout(begin, AGAIN_MS);
      });
      unsubscribe = () => subscription.unsubscribe();
    };
    begin();
    return () => {
      ended = true;
      clearTimeout(timer);
      clearTimeout(burstEnds);
      unsubscribe();
    };
  }, [client, document, key]);
  return error;
}

/** A query that is asked again when the connection is back, and whenever `again` is called. */
export function useFresh<Data, Variables extends AnyVariables>(
  query: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  pause = false,
) {
  const [{ data, error, fetching }, run] = useQuery({ query, variables, pause, requestPolicy: "cache-and-network" });
  const { times } = useConnection();
  const again = useCallback(() => run({ requestPolicy: "network-only" }), [run]);
  const onConnected = useEffectEvent(() => {
    // The first connection is no news, unless the query went out before the server was there.
    if (!pause && (times > 1 || error !== undefined)) again();
  });
  useEffect(() => onConnected(), [times]);
  return { data, error, fetching, again };
}

/** Calls `act` soon after the last of many calls, but no later than four times that after the first. */
export function useSoon(act: () => void, delayMs = 250): () => void {
  const latest = useRef(act);
  const waiting = useRef<{ timer?: ReturnType<typeof setTimeout>; due: number | null }>({ due: null });
  useEffect(() => {
    latest.current = act;
  });
  useEffect(() => () => clearTimeout(waiting.current.timer), []);
  return useCallback(() => {
    const now = Date.now();
    waiting.current.due ??= now + 4 * delayMs;
    clearTimeout(waiting.current.timer);
    const act = () => {
      waiting.current.due = null;
      latest.current();
    };
    waiting.current.timer = setTimeout(act, Math.max(0, Math.min(delayMs, waiting.current.due - now)));
  }, [delayMs]);
}
