/** Where each node of the forest stands: depth from left to right, a tidy tree a root, one below the other. */

import { hierarchy, tree } from "d3-hierarchy";
import type { Forest, ForestNode } from "./changes";

export const COLUMN = 216;
export const ROW = 46;

export interface Place {
  id: string;
  node: ForestNode;
  x: number;
  y: number;
  depth: number;
  /** The node that it hangs from; undefined for a root, and for one whose parent is missing. */
  parent: Place | undefined;
  /** Those that are shown, in order. */
  children: Place[];
  /** How many descendants a collapsed node hides. */
  hidden: number;
  /** All its descendants and itself, hidden ones too. */
  weight: number;
  /** Its place among its siblings, from 1, and their number. */
  position: number;
  siblings: number;
}

export interface Layout {
  places: ReadonlyMap<string, Place>;
  /** Depth first: what the arrow keys walk through. */
  order: readonly Place[];
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export function layOut(forest: Forest, collapsed: ReadonlySet<string>): Layout {
  const children = childrenOf(forest);
  const weights = weighed(children);
  // d3 wants one root: it stands left of the picture and is not shown.
  const all = hierarchy<string | null>(null, (id) =>
    id !== null && collapsed.has(id) ? undefined : children.get(id)?.map((node) => node.id),
  );
  const arranged = tree<string | null>()
    .nodeSize([ROW, COLUMN])
    .separation((a, b) => (a.depth === 1 ? 1.7 : a.parent === b.parent ? 1 : 1.25))(all);
  const places = new Map<string, Place>();
  const order: Place[] = [];
  const layout = { places, order, left: 0, right: 0, top: 0, bottom: 0 };
  arranged.eachBefore((point) => {
    const id = point.data;
    const node = id === null ? undefined : forest.get(id);
    if (id === null || node === undefined) return;
    const parent = places.get(point.parent?.data ?? "");
    const weight = weights.get(id) ?? 1;
    const siblings = point.parent?.children ?? [];
    const place: Place = {
      ...{ id, node, parent, weight, x: (point.depth - 1) * COLUMN, y: point.x, depth: point.depth - 1, children: [] },
      hidden: collapsed.has(id) ? weight - 1 : 0,
      position: 0,
      siblings: siblings.length,
    };
    parent?.children.push(place);
    places.set(id, place);
    order.push(place);
    layout.right = Math.max(layout.right, place.x);
    layout.top = Math.min(layout.top, place.y);
    layout.bottom = Math.max(layout.bottom, place.y);
  });
  number(order.filter((place) => place.parent === undefined));
  order.forEach((place) => number(place.children));
  return layout;
}

function number(siblings: Place[]) {
  siblings.forEach((place, index) => (place.position = index + 1));
}

/** Children by parent, roots under null, in order. A node whose parent is missing is a root. */
function childrenOf(forest: Forest): Map<string | null, ForestNode[]> {
  const children = new Map<string | null, ForestNode[]>();
  for (const node of forest.values()) {
    const parent = node.parentId != null && forest.has(node.parentId) ? node.parentId : null;
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [node]);
    else siblings.push(node);
  }
  for (const siblings of children.values()) siblings.sort((a, b) => a.index - b.index);
  return children;
}

function weighed(children: Map<string | null, ForestNode[]>): Map<string, number> {
  const weights = new Map<string, number>();
  const order = [...(children.get(null) ?? [])];
  for (const node of order) order.push(...(children.get(node.id) ?? []));
  for (const node of order.reverse()) {
    const below = children.get(node.id) ?? [];
    weights.set(node.id, below.reduce((sum, child) => sum + (weights.get(child.id) ?? 1), 1));
  }
  return weights;
}

/** The nearest node that is shown: itself, or the collapsed ancestor that hides it. */
export function shownFor(id: string, forest: Forest, layout: Layout): Place | undefined {
  for (let at = forest.get(id); at !== undefined; at = at.parentId == null ? undefined : forest.get(at.parentId)) {
    const place = layout.places.get(at.id);
    if (place !== undefined) return place;
  }
  return undefined;
}

export const radiusOf = (node: ForestNode) => Math.min(17, 5 + 2.1 * Math.sqrt(node.turnCount));

export const isFork = (node: ForestNode) => node.sourceSessionId != null;
