import { expect, test } from "vitest";
import { mergeEvents, nextSeq } from "./merge";

const events = (...seqs: number[]) => seqs.map((seq) => ({ seq }));
const seqs = (list: readonly { seq: number }[]) => list.map((event) => event.seq);

test("what goes on behind the list is added to it", () => {
  expect(seqs(mergeEvents(events(0, 1), events(2, 3)))).toEqual([0, 1, 2, 3]);
});

test("what comes twice is dropped, and a list that gains nothing stays the same list", () => {
  const known = events(4, 5, 6);
  expect(mergeEvents(known, events(5, 6))).toBe(known);
  expect(mergeEvents(known, [])).toBe(known);
  expect(seqs(mergeEvents(known, events(6, 7, 7)))).toEqual([4, 5, 6, 7]);
});

test("a page of older events goes before", () => {
  expect(seqs(mergeEvents(events(10, 11), events(7, 8, 9)))).toEqual([7, 8, 9, 10, 11]);
});

test("any split, overlap and order of arrival gives the log itself", () => {
  let state = 42;
  const random = (below: number) => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) % below;
  for (let round = 0; round < 300; round++) {
    const length = 1 + random(60);
    let list: readonly { seq: number }[] = [];
    for (let piece = 0; piece < 8; piece++) {
      const from = random(length);
      const to = from + random(length - from + 1);
      list = mergeEvents(list, events(...Array.from({ length: to - from }, (_, index) => from + index)));
    }
    list = mergeEvents(list, events(...Array.from({ length }, (_, index) => index)));
    expect(seqs(list)).toEqual(Array.from({ length }, (_, index) => index));
  }
});

test("reading goes on behind the last event, or at the start of an empty list", () => {
  expect(nextSeq(events(3, 4), 3)).toBe(5);
  expect(nextSeq([], 7)).toBe(7);
});
