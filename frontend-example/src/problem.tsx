/** An error of the server, in words, where it belongs. */

import type { CombinedError } from "@urql/core";
import { codeOf } from "./client";

const REMEDIES: Record<string, string> = {
  ARCHIVED: "Restore the session to write to it.",
  CONFLICT: "Somebody else wrote meanwhile. Look at the newest version, then try again.",
  TURN_ENDED: "The turn is over. Start another one.",
  UNAVAILABLE: "The database is out of reach. Try again in a moment.",
  RATE_LIMITED: "Too much at once. Try again in a moment.",
  UNAUTHENTICATED: "This server wants an API key.",
  FORBIDDEN: "Your key does not allow this.",
};

export function wordsOf(error: CombinedError): string {
  const first = error.graphQLErrors[0];
  if (first === undefined) return "The server can’t be reached. This page goes on trying.";
  const remedy = REMEDIES[codeOf(error) ?? ""];
  return remedy === undefined ? first.message : `${first.message.replace(/\.?$/, ".")} ${remedy}`;
}

export function Problem({ error }: { error: CombinedError | undefined }) {
  if (error === undefined) return null;
  const code = codeOf(error);
  return (
    <p className="problem" role="alert">
      {wordsOf(error)} {code === undefined ? null : <code>{code}</code>}
    </p>
  );
}
