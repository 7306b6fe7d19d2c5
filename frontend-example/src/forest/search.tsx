/** Search by label: a text field with a list of what it finds, as ARIA's combobox pattern has it. */

import { useState, type KeyboardEvent } from "react";
import type { ForestNode } from "./changes";

const SHOWN = 8;

interface Props {
  words: string;
  found: readonly ForestNode[];
  onWords: (words: string) => void;
  onChoose: (node: ForestNode) => void;
}

export function Search({ words, found, onWords, onChoose }: Props) {
  const [at, setAt] = useState(0);
  const [open, setOpen] = useState(false);
  const shown = found.slice(0, SHOWN);
  const active = Math.min(at, Math.max(0, shown.length - 1));
  const showing = open && words.trim() !== "";
  const choose = (node: ForestNode | undefined) => {
    if (node === undefined) return;
    onChoose(node);
    setOpen(false);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(active + 1, shown.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(active - 1, 0));
    else if (event.key === "Enter") choose(shown[active]);
    else if (event.key === "Escape") onWords("");
    else return;
    event.preventDefault();
  };
  return (
    <div className="search">
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d="M7 12.5a5.5 5.5 0 1 1 0-11 5.5 5.5 0 0 1 0 11Zm4-1.5 3.5 3.5" />
      </svg>
      <input
        type="search"
        role="combobox"
        aria-label="Search sessions by label"
        aria-expanded={showing}
        aria-controls="found"
        aria-activedescendant={showing && shown.length > 0 ? `found-${active}` : undefined}
        aria-autocomplete="list"
        placeholder="Search"
        value={words}
        onChange={(event) => {
          onWords(event.target.value);
          setAt(0);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKeyDown}
      />
      <ul id="found" role="listbox" aria-label="Sessions found" hidden={!showing || shown.length === 0}>
        {shown.map((node, index) => (
          <li
            key={node.id}
            id={`found-${index}`}
            role="option"
            aria-selected={index === active}
            // The field would lose the focus before the click is done.
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => choose(node)}
          >
            {node.label}
            <small>{node.status === "ARCHIVED" ? "archived" : `${node.turnCount} turns`}</small>
          </li>
        ))}
      </ul>
      <p className="unseen" role="status">
        {words.trim() === "" ? "" : `${found.length} found`}
      </p>
      {showing && shown.length === 0 ? <p className="none">No label has “{words}”.</p> : null}
    </div>
  );
}
