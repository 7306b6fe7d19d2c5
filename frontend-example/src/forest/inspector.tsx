/** What is known of one node of the forest, and what can be done with it. */

import { useMutation } from "urql";
import { useFresh } from "../follow";
import { ago, count, plural } from "../format";
import {
  ArchiveSessionDocument,
  CreateSessionDocument,
  ForkSessionDocument,
  NodeDigestDocument,
  RestoreSessionDocument,
} from "../gql/graphql";
import { Problem } from "../problem";
import { hrefOf } from "../route";
import type { Forest, ForestNode } from "./changes";

interface Props {
  node: ForestNode;
  forest: Forest;
  collapsed: boolean;
  onToggle: (collapse: boolean) => void;
  onSelect: (id: string) => void;
  onClose: () => void;
}

export function Inspector({ node, forest, collapsed, onToggle, onSelect, onClose }: Props) {
  const { data, error } = useFresh(NodeDigestDocument, { id: node.id });
  const [forked, fork] = useMutation(ForkSessionDocument);
  const [created, create] = useMutation(CreateSessionDocument);
  const [archived, archive] = useMutation(ArchiveSessionDocument);
  const [restored, restore] = useMutation(RestoreSessionDocument);
  const children = [...forest.values()].filter((other) => other.parentId === node.id).length;
  const linked = (id: string | null | undefined) => {
    const other = id == null ? undefined : forest.get(id);
    if (other === undefined) return null;
    return (
      <button type="button" className="link" onClick={() => onSelect(other.id)}>
        {other.label}
      </button>
    );
  };
  const digest = data?.digest;
  return (
    <aside className="inspector" aria-label="Chosen session">
      <header>
        <h2>{node.label}</h2>
        <button type="button" className="plain" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </header>
      <p className="facts">
        {node.status === "ARCHIVED" ? <span className="tag">archived</span> : null}
        <span>{plural(node.turnCount, "turn")}</span>
        <span>{plural(node.head, "event")}</span>
        {digest ? <span>{ago(digest.lastEventAt)}</span> : null}
      </p>
      <dl>
        {node.parentId == null ? null : (
          <>
            <dt>Under</dt>
            <dd>{linked(node.parentId)}</dd>
          </>
        )}
        {node.sourceSessionId == null ? null : (
          <>
            <dt>Fork of</dt>
            <dd>
              {linked(node.sourceSessionId) ?? "a deleted session"}, at {count(node.forkSeq ?? 0)}
            </dd>
          </>
        )}
        {node.refs.length === 0 ? null : (
          <>
            <dt>Refers to</dt>
            <dd>
              {node.refs.map((id) => (
                <span key={id}>{linked(id)} </span>
              ))}
            </dd>
          </>
        )}
        {digest?.memory ? (
          <>
            <dt>Memory</dt>
            <dd className="said">{digest.memory.content}</dd>
          </>
        ) : null}
        {digest?.insight ? (
          <>
            <dt>Insight waiting</dt>
            <dd className="said">{digest.insight.content}</dd>
          </>
        ) : null}
      </dl>
      <div className="actions">
        <a className="primary" href={hrefOf.session(node.id)}>
          Open
        </a>
        <button type="button" onClick={() => void fork({ input: { sourceId: node.id } })} disabled={forked.fetching}>
          Fork
        </button>
        <button type="button" onClick={() => void create({ input: { parentId: node.id } })} disabled={created.fetching}>
          Add child
        </button>
        {node.status === "ACTIVE" ? (
          <button type="button" onClick={() => void archive({ id: node.id })} disabled={archived.fetching}>
            Archive
          </button>
        ) : (
          <button type="button" onClick={() => void restore({ id: node.id })} disabled={restored.fetching}>
            Restore
          </button>
        )}
        {children > 0 ? (
          <button type="button" onClick={() => onToggle(!collapsed)} aria-expanded={!collapsed}>
            {collapsed ? "Expand" : "Collapse"}
          </button>
        ) : null}
      </div>
      <Problem error={error ?? forked.error ?? created.error ?? archived.error ?? restored.error} />
    </aside>
  );
}
