/** The surface as the model sees it: what the next send would give, in its order. */

import { useEffect, useState } from "react";
import { useFresh } from "../follow";
import { count, shown } from "../format";
import { PromptContextDocument } from "../gql/graphql";
import { Problem } from "../problem";

export function SurfaceTab({ id, head }: { id: string; head: number }) {
  const { data, error, again } = useFresh(PromptContextDocument, { id });
  const [raw, setRaw] = useState(false);
  const context = data?.session?.context;
  const behind = context !== undefined && context.atSeq < head;
  useEffect(() => {
    if (!behind) return;
    const timer = setTimeout(again, 300);
    return () => clearTimeout(timer);
  }, [behind, head, again]);
  if (context === undefined) return error ? <Problem error={error} /> : <p className="quiet">Reading …</p>;
  return (
    <div className="surface">
      <p className="facts">
        <span>{count(context.messages.length)} messages</span>
        <span>as of event {count(context.atSeq)}</span>
        <label className="switch">
          <input type="checkbox" checked={raw} onChange={(event) => setRaw(event.target.checked)} />
          As sent to a chat completions endpoint
        </label>
      </p>
      <Problem error={error} />
      {raw ? (
        <pre className="raw" tabIndex={0} aria-label="Messages as JSON">
          {JSON.stringify(context.openai, null, 2)}
        </pre>
      ) : (
        <ol className="messages">
          {context.systemPrompt == null ? null : <Message role="SYSTEM" tag="system prompt" content={context.systemPrompt} />}
          {context.insight == null ? null : <Message role="SYSTEM" tag="insight" content={context.insight.content} />}
          {context.messages.map((message, index) => (
            <Message
              key={index}
              role={message.role}
              content={message.content ?? ""}
              tag={[
                message.sourceEventSeqs.length > 0 ? `event ${message.sourceEventSeqs.join(", ")}` : "supplied",
                ...(message.repaired ? ["repaired"] : []),
                ...(message.toolCallId == null ? [] : [`answers ${message.toolCallId}`]),
              ].join(" · ")}
              calls={message.toolCalls?.map((call) => `${call.name}(${shown(call.arguments)})  ${call.id}`)}
            />
          ))}
        </ol>
      )}
    </div>
  );
}

interface MessageProps {
  role: string;
  content: string;
  tag: string;
  calls?: string[];
}

function Message({ role, content, tag, calls = [] }: MessageProps) {
  return (
    <li data-role={role}>
      <p className="who">
        {role.toLowerCase()} <small>{tag}</small>
      </p>
      {content === "" ? null : <pre>{content}</pre>}
      {calls.map((call) => (
        <pre key={call} className="of-call">
          {call}
        </pre>
      ))}
    </li>
  );
}
