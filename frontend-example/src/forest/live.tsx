/** The forest for all pages: one subscription, shared. */

import type { CombinedError } from "@urql/core";
import { createContext, use, useState, type ReactNode } from "react";
import { useFollow } from "../follow";
import { ForestChangesDocument } from "../gql/graphql";
import { applyChange, type Forest } from "./changes";

interface Live {
  /** undefined until the first snapshot has come. */
  forest: Forest | undefined;
  error: CombinedError | undefined;
}

const LiveForest = createContext<Live>({ forest: undefined, error: undefined });

export function ForestProvider({ children }: { children: ReactNode }) {
  const [forest, setForest] = useState<Forest>();
  const error = useFollow(
    ForestChangesDocument,
    "forest",
    () => ({}),
    (arrived) => {
      const changes = arrived.map((data) => data.forestChanges);
      setForest((known) => changes.reduce<Forest | undefined>(applyChange, known));
    },
  );
  return <LiveForest value={{ forest, error }}>{children}</LiveForest>;
}

export const useForest = () => use(LiveForest);
