/** The forest as the page knows it: a snapshot, and each change laid over it. */

import type { ForestChangesSubscription, ForestNodeFragment } from "../gql/graphql";

export type ForestNode = ForestNodeFragment;
export type ForestChange = ForestChangesSubscription["forestChanges"];
export type Forest = ReadonlyMap<string, ForestNode>;

/** The forest after a change. A snapshot replaces all, so that what was missed while away does not matter. */
export function applyChange(forest: Forest | undefined, change: ForestChange): Forest {
  if (change.__typename === "ForestSnapshot") return new Map(change.forest.nodes.map((node) => [node.id, node]));
  const changed = new Map(forest);
  for (const node of change.upserted) changed.set(node.id, node);
  for (const id of change.removedIds) changed.delete(id);
  return changed;
}
