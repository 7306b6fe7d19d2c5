/** The forest: its picture, a search, and what is known of the node chosen. */

import { useMemo, useState } from "react";
import { useMutation } from "urql";
import { plural } from "../format";
import { CreateSessionDocument } from "../gql/graphql";
import { Problem } from "../problem";
import { go, hrefOf } from "../route";
import { ForestCanvas } from "./canvas";
import type { Forest } from "./changes";
import { Inspector } from "./inspector";
import { layOut } from "./layout";
import { useForest } from "./live";
import { Search } from "./search";

export function ForestPage({ id }: { id: string | undefined }) {
  const { forest, error } = useForest();
  if (forest === undefined) {
    return (
      <main className="middle">
        {error ? <Problem error={error} /> : <p className="quiet">Asking for the forest …</p>}
      </main>
    );
  }
  return forest.size === 0 ? <Empty /> : <Grown forest={forest} initial={id} />;
}

function Grown({ forest, initial }: { forest: Forest; initial: string | undefined }) {
  const [selected, setSelected] = useState(initial);
  const [addressed, setAddressed] = useState(initial);
  // Back, forward or another address chooses anew; the picture stays.
  if (addressed !== initial) {
    setAddressed(initial);
    setSelected(initial);
  }
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(new Set());
  const [words, setWords] = useState("");
  const { error } = useForest();
  const layout = useMemo(() => layOut(forest, collapsed), [forest, collapsed]);
  const found = useMemo(() => matching(forest, words), [forest, words]);
  const toggle = (id: string, collapse: boolean) => {
    const changed = new Set(collapsed);
    if (collapse) changed.add(id);
    else changed.delete(id);
    setCollapsed(changed);
  };
  const reveal = (id: string) => {
    const changed = new Set(collapsed);
    for (let at = forest.get(id)?.parentId; at != null; at = forest.get(at)?.parentId) changed.delete(at);
    if (changed.size < collapsed.size) setCollapsed(changed);
    setSelected(id);
  };
  const chosen = selected === undefined ? undefined : forest.get(selected);
  const inner = layout.order.filter((place) => place.children.length > 0 && place.parent === undefined);
  return (
    <main className="forest">
      <h1 className="unseen">Forest</h1>
      <ForestCanvas
        {...{ forest, layout, selected: chosen?.id, onSelect: setSelected }}
        found={found && new Set(found.map((node) => node.id))}
        onOpen={(id) => go(hrefOf.session(id))}
        onToggle={toggle}
      />
      <div className="over">
        <Search words={words} found={found ?? []} onWords={setWords} onChoose={(node) => reveal(node.id)} />
        <p className="tally">
          {plural(forest.size, "session")}
          {collapsed.size > 0 ? (
            <button type="button" className="link" onClick={() => setCollapsed(new Set())}>
              Expand all
            </button>
          ) : inner.length > 1 ? (
            <button
              type="button"
              className="link"
              onClick={() => setCollapsed(new Set(inner.map((place) => place.id)))}
            >
              Collapse trees
            </button>
          ) : null}
        </p>
        <Problem error={error} />
      </div>
      <Legend />
      {chosen === undefined ? null : (
        <Inspector
          key={chosen.id}
          node={chosen}
          forest={forest}
          collapsed={collapsed.has(chosen.id)}
          onToggle={(collapse) => toggle(chosen.id, collapse)}
          onSelect={reveal}
          onClose={() => setSelected(undefined)}
        />
      )}
    </main>
  );
}

function matching(forest: Forest, words: string) {
  const wanted = words.trim().toLocaleLowerCase();
  if (wanted === "") return undefined;
  return [...forest.values()].filter((node) => node.label.toLocaleLowerCase().includes(wanted));
}

function Legend() {
  return (
    <ul className="legend" aria-label="Legend">
      <li className="of-child">child</li>
      <li className="of-fork">fork</li>
      <li className="of-ref">reference</li>
      <li className="of-archived">archived</li>
      <li className="of-work">at work</li>
    </ul>
  );
}

function Empty() {
  const [{ fetching, error }, create] = useMutation(CreateSessionDocument);
  return (
    <main className="middle">
      <h1>Nothing has grown here yet</h1>
      <p className="quiet">
        A session appears as soon as an agent creates one. Or plant the first yourself; <code>sapwood demo</code> brings
        some along.
      </p>
      <button
        type="button"
        className="primary"
        disabled={fetching}
        onClick={() => void create({ input: { label: "First session" } })}
      >
        Plant a root
      </button>
      <Problem error={error} />
    </main>
  );
}
