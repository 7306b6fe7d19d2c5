/** The client: queries by fetch, subscriptions by one WebSocket, and one cache for both. */

import { Client, fetchExchange, subscriptionExchange, type CombinedError } from "@urql/core";
import { cacheExchange, type KeyGenerator } from "@urql/exchange-graphcache";
import { createClient, type Client as SocketClient } from "graphql-ws";

/** Types without an id of their own: the cache keeps them inside of what they belong to. */
const EMBEDDED = [
  ...["AppendEventsPayload", "CardEntry", "ConversationPage", "DigestConnection", "EventPage", "Forest", "ForestDelta"],
  ...["ForestSnapshot", "FormDefinition", "Message", "MessageToolCall", "PageInfo", "PlaceholderEntry", "PromptContext"],
  ...["RunConnection", "SessionStats", "Slot", "SlotChange", "Step", "SurfaceOp", "TextEntry", "ToolEntry"],
  ...["ToolInvocation", "Viewer"],
];
const inside: KeyGenerator = () => null;

/** How the connection is. `times` counts how often it was made, so that a page can tell a new one from the first. */
export interface Connection {
  state: "connecting" | "live" | "lost";
  times: number;
}

class ConnectionStore {
  current: Connection = { state: "connecting", times: 0 };
  private readonly listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly read = () => this.current;

  become(state: Connection["state"]) {
    this.current = { state, times: this.current.times + (state === "live" ? 1 : 0) };
    this.listeners.forEach((listener) => listener());
  }
}

export const connection = new ConnectionStore();

const SILENCE_MS = 10_000;
const LONGEST_WAIT_MS = 4_000;

function openSocket(url: string): SocketClient {
  let answerDue: ReturnType<typeof setTimeout> | undefined;
  const socket = createClient({
    url,
    // A server that was stopped comes back some time: never give up, and wait a little longer each time.
    retryAttempts: Infinity,
    shouldRetry: () => true,
    retryWait: (tries) => {
      const wait = Math.min(LONGEST_WAIT_MS, 250 * 2 ** tries);
      return new Promise((resolve) => setTimeout(resolve, wait * (0.75 + Math.random() / 2)));
    },
    lazyCloseTimeout: SILENCE_MS,
    // A dead network closes no socket. Whoever is not answered a ping hangs up and connects anew.
    keepAlive: SILENCE_MS,
    on: {
      connecting: () => connection.become(connection.current.times === 0 ? "connecting" : "lost"),
      connected: () => connection.become("live"),
      closed: () => {
        clearTimeout(answerDue);
        connection.become("lost");
      },
      ping: (received) => {
        if (!received) answerDue = setTimeout(() => socket.terminate(), SILENCE_MS / 2);
      },
      pong: (received) => {
        if (received) clearTimeout(answerDue);
      },
    },
  });
  return socket;
}

export function makeClient(): Client {
  const url = new URL("/graphql", location.href);
  const socket = openSocket(url.href.replace(/^http/, "ws"));
  return new Client({
    url: url.href,
    preferGetMethod: false,
    exchanges: [
      // What has an id is kept once, under its typename and id: "Session:a" and "TopologyNode:a" are two things.
      cacheExchange({ keys: Object.fromEntries(EMBEDDED.map((name) => [name, inside])) }),
      fetchExchange,
      subscriptionExchange({
        forwardSubscription(request, operation) {
          // The socket client sends this object again at each reconnection, and reads `variables` each time: that is
          // where a subscription that resumes says from where.
          const resume = operation.context.resume as (() => Record<string, unknown>) | undefined;
          const payload = {
            query: request.query ?? "",
            get variables() {
              return resume?.() ?? (request.variables as Record<string, unknown> | undefined);
            },
          };
          return { subscribe: (sink) => ({ unsubscribe: socket.subscribe(payload, sink) }) };
        },
      }),
    ],
  });
}

/** The code of the server's first error, or undefined if the server was not reached at all. */
export function codeOf(error: CombinedError): string | undefined {
  const code = error.graphQLErrors[0]?.extensions.code;
  return typeof code === "string" ? code : undefined;
}
