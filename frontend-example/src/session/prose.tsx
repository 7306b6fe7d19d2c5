/** Text of a message with the little markup that models write: headings, lists, code, bold. All of it stays text. */

import { Fragment, type ReactNode } from "react";

export function Prose({ text }: { text: string }) {
  const pieces = text.split(/^```[^\n]*\n([\s\S]*?)(?:^```[^\n]*$|$(?![\s\S]))/m);
  return (
    <div className="prose">
      {pieces.map((piece, index) =>
        index % 2 === 1 ? (
          <pre key={index} tabIndex={0} aria-label="Code">
            <code>{piece.replace(/\n$/, "")}</code>
          </pre>
        ) : (
          <Fragment key={index}>{blocksOf(piece)}</Fragment>
        ),
      )}
    </div>
  );
}

const ITEM = /^\s*(?:[-*•]|\d+[.)])\s+/;

function blocksOf(text: string): ReactNode[] {
  const blocks = text.split(/\n\s*\n/).filter((block) => block.trim() !== "");
  return blocks.map((block, index) => {
    const lines = block.replace(/^\n+|\n+$/g, "").split("\n");
    const heading = lines.length === 1 ? /^#{1,6}\s+(.*)/.exec(block.trim()) : null;
    if (heading) return <p key={index} className="heading">{inline(heading[1] ?? "")}</p>;
    if (lines.every((line) => ITEM.test(line))) {
      const List = /^\s*\d/.test(lines[0] ?? "") ? "ol" : "ul";
      return (
        <List key={index}>
          {lines.map((line, at) => (
            <li key={at}>{inline(line.replace(ITEM, ""))}</li>
          ))}
        </List>
      );
    }
    return <p key={index}>{inline(lines.join("\n"))}</p>;
  });
}

function inline(text: string): ReactNode[] {
  return text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/).map((piece, index) => {
    if (index % 2 === 0) return piece;
    return piece.startsWith("`") ? (
      <code key={index}>{piece.slice(1, -1)}</code>
    ) : (
      <strong key={index}>{piece.slice(2, -2)}</strong>
    );
  });
}
