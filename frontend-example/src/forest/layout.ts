/** Where each node of the forest stands: depth from left to right, a tidy tree a root, the trees one below the other. */

import { hierarchy, tree, type HierarchyPointNode } from "d3-hierarchy";
import type { Forest, ForestNode } from "./changes";

export const COLUMN = 216;
export const ROW = 46;
const GAP = 0.75 * ROW;
/** A forest taller than this is broken into columns of trees, so that all of it makes a picture and not a line. */
const TALL = 60 * ROW;
const WIDE = 1.7;

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
  /** How many levels are shown below it. */
  levels: number;
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

type Point = HierarchyPointNode<ForestNode>;

export function layOut(forest: Forest, collapsed: ReadonlySet<string>): Layout {
  const children = childrenOf(forest);
  const weights = weighed(children);
  const arrange = tree<ForestNode>()
    .nodeSize([ROW, COLUMN])
    .separation((a, b) => (a.parent === b.parent ? 1 : 1.25));
  const shown = (node: ForestNode) => (collapsed.has(node.id) ? undefined : children.get(node.id));
  const trees = (children.get(null) ?? []).map((root) => measured(arrange(hierarchy(root, shown))));
  const places = new Map<string, Place>();
  const order: Place[] = [];
  for (const { root, x, y } of inColumns(trees)) {
    root.eachBefore((point) => {
      const { id } = point.data;
      const parent = places.get(point.parent?.data.id ?? "");
      const weight = weights.get(id) ?? 1;
      const place: Place = {
        ...{ id, node: point.data, parent, children: [], weight, position: 0, siblings: 0 },
        ...{ x: x + point.depth * COLUMN, y: y + point.x, depth: point.depth, levels: point.height },
        hidden: collapsed.has(id) ? weight - 1 : 0,
      };
      parent?.children.push(place);
      places.set(id, place);
      order.push(place);
    });
  }
  number(order.filter((place) => place.parent === undefined));
  order.forEach((place) => number(place.children));
  const [left, right] = reach(order.map((place) => place.x));
  const [top, bottom] = reach(order.map((place) => place.y));
  return { places, order, left, right, top, bottom };
}

interface Tree {
  root: Point;
  top: number;
  height: number;
  width: number;
}

function measured(root: Point): Tree {
  const [top, bottom] = reach(root.descendants().map((point) => point.x));
  return { root, top, height: bottom - top + ROW, width: (root.height + 1) * COLUMN + 60 };
}

/** Where each tree stands: one below the other, in as many columns as make the whole about as wide as a window. */
function inColumns(trees: readonly Tree[]): { root: Point; x: number; y: number }[] {
  const total = trees.reduce((sum, one) => sum + one.height + GAP, 0);
  const usual = trees.reduce((sum, one) => sum + one.width * one.height, 0) / Math.max(1, total);
  const enough = total <= TALL ? Infinity : Math.max(TALL, Math.sqrt((total * usual) / WIDE));
  let [x, y, width] = [0, 0, 0];
  return trees.map(({ root, top, height, width: own }) => {
    if (y > 0 && y + height / 2 > enough) [x, y, width] = [x + width, 0, 0];
    const placed = { root, x, y: y - top };
    y += height + GAP;
    width = Math.max(width, own);
    return placed;
  });
}

/** The least and the greatest of many numbers, 0 if there are none. */
function reach(numbers: readonly number[]): [number, number] {
  return numbers.reduce<[number, number]>(
    ([least, greatest], one) => [Math.min(least, one), Math.max(greatest, one)],
    numbers.length === 0 ? [0, 0] : [Infinity, -Infinity],
  );
}

function number(siblings: Place[]) {
  siblings.forEach((place, index) => Object.assign(place, { position: index + 1, siblings: siblings.length }));
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
