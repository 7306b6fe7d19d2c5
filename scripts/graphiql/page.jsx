// GraphiQL on the server that the page came from, with a few operations to begin with.
import { createGraphiQLFetcher } from "@graphiql/toolkit";
import { GraphiQL } from "graphiql";
import "graphiql/style.css";
import "./page.css";
import { createRoot } from "react-dom/client";
import { EXAMPLES } from "./examples.js";

const address = new URL("/graphql", window.location.href);
const socket = new URL(address);
socket.protocol = address.protocol === "https:" ? "wss:" : "ws:";

// What the headers editor holds goes with each request, and with a socket's connection_init.
const fetcher = createGraphiQLFetcher({ url: address.href, subscriptionUrl: socket.href });

createRoot(document.getElementById("graphiql")).render(
  <GraphiQL fetcher={fetcher} defaultTabs={EXAMPLES} shouldPersistHeaders={false} />,
);
