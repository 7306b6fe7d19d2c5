/** One list of events by seq, whatever comes twice or late. */

interface Numbered {
  seq: number;
}

/**
 * `known` with the events of `arrived` that it lacks, by seq; `known` itself if there are none.
 *
 * Both must be in order. A page of older events and a live event are the same to it.
 */
export function mergeEvents<E extends Numbered>(known: readonly E[], arrived: readonly E[]): readonly E[] {
  const last = known.at(-1)?.seq ?? -1;
  const first = arrived[0];
  if (first === undefined) return known;
  if (first.seq > last) return [...known, ...distinct(arrived)];
  const held = new Set(known.map((event) => event.seq));
  const missing = distinct(arrived).filter((event) => !held.has(event.seq));
  return missing.length === 0 ? known : [...known, ...missing].sort((a, b) => a.seq - b.seq);
}

function distinct<E extends Numbered>(events: readonly E[]): readonly E[] {
  return events.filter((event, index) => event.seq !== events[index - 1]?.seq);
}

/** Where to go on after a list: behind its last event, or at `start` if there is none. */
export const nextSeq = (events: readonly Numbered[], start: number) => (events.at(-1)?.seq ?? start - 1) + 1;
