/** Digests as an orchestrator collects them: all once, and from then on what has changed since. */

import type { Client, CombinedError } from "@urql/core";
import { useEffect, useState, useSyncExternalStore } from "react";
import { useClient } from "urql";
import { useConnection, useFollow, useSoon } from "../follow";
import { DigestEventsDocument, DigestsDocument, DigestSlotsDocument, type DigestsQuery } from "../gql/graphql";

type Page = NonNullable<DigestsQuery["digests"]>;
export type Digest = Page["nodes"][number];

interface Collected {
  /** undefined until the first collection is whole. */
  digests: ReadonlyMap<string, Digest> | undefined;
  error: CombinedError | undefined;
}

class Collection {
  private collected: Collected = { digests: undefined, error: undefined };
  private asOf: string | undefined;
  private running = false;
  private again = false;
  private listener: () => void = () => undefined;

  constructor(private readonly client: Client) {}

  readonly subscribe = (listener: () => void) => {
    this.listener = listener;
    return () => {
      this.listener = () => undefined;
    };
  };

  readonly read = () => this.collected;

  /** Asks for what has changed. One collection at a time: what is asked for meanwhile is one more after it. */
  async collect() {
    this.again = true;
    if (this.running) return;
    this.running = true;
    while (this.again) {
      this.again = false;
      await this.round();
    }
    this.running = false;
  }

  private async round() {
    const changed: Digest[] = [];
    let page: Page;
    let after: string | null = null;
    do {
      const asked: { updatedSince?: string; after: string | null } = { updatedSince: this.asOf, after };
      const { data, error } = await this.client.query(DigestsDocument, asked, { requestPolicy: "network-only" });
      if (!data?.digests) {
        this.become({ digests: this.collected.digests, error });
        return;
      }
      page = data.digests;
      changed.push(...page.nodes);
      after = page.pageInfo.hasNextPage ? (page.pageInfo.endCursor ?? null) : null;
    } while (after !== null);
    // Only a whole collection moves the mark. It is the same on all its pages, and behind it nothing is missed.
    this.asOf = page.asOf;
    const known = this.collected.digests ?? new Map<string, Digest>();
    this.become({
      digests: new Map([...known, ...changed.map((digest) => [digest.id, digest] as const)]),
      error: undefined,
    });
  }

  private become(collected: Collected) {
    this.collected = collected;
    this.listener();
  }
}

export function useDigests() {
  const client = useClient();
  const { times } = useConnection();
  const [collection] = useState(() => new Collection(client));
  const { digests, error } = useSyncExternalStore(collection.subscribe, collection.read);
  useEffect(() => void collection.collect(), [collection, times]);
  const soon = useSoon(() => void collection.collect(), 400);
  useFollow(DigestEventsDocument, "digests", () => ({}), soon);
  useFollow(DigestSlotsDocument, "digest slots", () => ({}), soon);
  return { digests, error, collect: soon };
}
