import { expect, test } from "vitest";
import { applyChange, type Forest, type ForestNode } from "./changes";
import { COLUMN, layOut, radiusOf, ROW, shownFor } from "./layout";

const node = (id: string, parentId: string | null = null, index = 0, given: Partial<ForestNode> = {}): ForestNode => ({
  ...{ __typename: "TopologyNode", id, parentId, index, label: id, status: "ACTIVE" },
  ...{ sourceSessionId: null, forkSeq: null, refs: [], turnCount: 1, head: 1, ...given },
});
const forestOf = (...nodes: ForestNode[]): Forest => new Map(nodes.map((one) => [one.id, one]));
const ids = (places: readonly { id: string }[]) => places.map((place) => place.id);

const small = forestOf(node("b", null, 1), node("a"), node("a2", "a", 5), node("a1", "a", 2), node("a11", "a1"));

test("depth goes from left to right, siblings by index from top to bottom", () => {
  const layout = layOut(small, new Set());
  expect(ids(layout.order)).toEqual(["a", "a1", "a11", "a2", "b"]);
  expect(layout.order.map((place) => place.x / COLUMN)).toEqual([0, 1, 2, 1, 0]);
  const heights = ["a1", "a2"].map((id) => layout.places.get(id)?.y ?? NaN);
  expect(heights[0]).toBeLessThan(heights[1] ?? NaN);
});

test("no two nodes of a column come closer than a row", () => {
  const many: ForestNode[] = [];
  for (let index = 0; index < 400; index++) {
    many.push(node(`n${index}`, index === 0 ? null : `n${Math.floor((index * 7919) % index)}`, index));
  }
  const layout = layOut(forestOf(...many), new Set());
  for (const depth of new Set(layout.order.map((place) => place.depth))) {
    const column = layout.order.filter((place) => place.depth === depth);
    const heights = column.map((place) => place.y).sort((a, b) => a - b);
    heights.forEach((y, index) => expect(y - (heights[index - 1] ?? -Infinity)).toBeGreaterThanOrEqual(ROW - 0.01));
  }
});

test("a tall forest stands in columns, all of it about as wide as a window, and no tree upon another", () => {
  const many = Array.from({ length: 600 }, (_, index) => {
    const root = index - (index % 15);
    return node(`n${index}`, index === root ? null : `n${root}`, index);
  });
  const layout = layOut(forestOf(...many), new Set());
  const aspect = (layout.right - layout.left) / (layout.bottom - layout.top);
  expect(aspect).toBeGreaterThan(0.8);
  expect(aspect).toBeLessThan(3.5);
  const taken = layout.order.map((place) => `${place.x} ${Math.round(place.y / 20)}`);
  expect(new Set(taken).size).toBe(taken.length);
});

test("a collapsed node hides what is below it, says how much, and stands for it", () => {
  const layout = layOut(small, new Set(["a"]));
  expect(ids(layout.order)).toEqual(["a", "b"]);
  expect(layout.places.get("a")?.hidden).toBe(3);
  expect(shownFor("a11", small, layout)?.id).toBe("a");
  expect(shownFor("nobody", small, layout)).toBeUndefined();
});

test("places among siblings are counted for readers of screens", () => {
  const layout = layOut(small, new Set());
  const told = (id: string) => [layout.places.get(id)?.position, layout.places.get(id)?.siblings];
  expect([told("a"), told("b"), told("a2")]).toEqual([[1, 2], [2, 2], [2, 2]]);
});

test("a node whose parent is missing is a root, and an empty forest has an empty picture", () => {
  expect(layOut(forestOf(node("x", "gone")), new Set()).order[0]?.depth).toBe(0);
  expect(layOut(forestOf(), new Set()).order).toEqual([]);
});

test("more turns make a bigger node, up to a bound", () => {
  const sizes = [0, 1, 10, 1_000_000].map((turnCount) => radiusOf(node("x", null, 0, { turnCount })));
  expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
  expect(sizes.at(-1)).toBe(17);
});

test("a delta changes what it names, and a snapshot replaces everything", () => {
  const delta = { __typename: "ForestDelta" as const, upserted: [node("b", "a", 3), node("c")], removedIds: ["a2"] };
  const changed = applyChange(small, delta);
  expect([...changed.keys()].sort()).toEqual(["a", "a1", "a11", "b", "c"]);
  expect(changed.get("b")?.parentId).toBe("a");
  const forest = { __typename: "Forest" as const, nodes: [node("z")] };
  expect([...applyChange(changed, { __typename: "ForestSnapshot", forest }).keys()]).toEqual(["z"]);
});
