// Runs operations with a client that is not ours. Arguments: ws or sse, then the address.
// Reads {id, query, variables} as lines of JSON, and prints {id, result}, {id, error} or {id, complete} as such.
import { createInterface } from "node:readline";
import { createClient as createStreams } from "graphql-sse";
import { createClient as createSocket } from "graphql-ws";
import WebSocket from "ws";

const [transport, url] = process.argv.slice(2);
const client =
  transport === "ws"
    ? createSocket({ url, webSocketImpl: WebSocket, retryAttempts: 0, lazy: false })
    : createStreams({ url, retryAttempts: 0 });
const print = (message) => console.log(JSON.stringify(message));
const told = (error) => (Array.isArray(error) ? error : { message: error.message, code: error.code });

for await (const line of createInterface({ input: process.stdin })) {
  const { id, query, variables } = JSON.parse(line);
  client.subscribe(
    { query, variables },
    {
      next: (result) => print({ id, result }),
      error: (error) => print({ id, error: told(error) }),
      complete: () => print({ id, complete: true }),
    },
  );
}
client.dispose();
