import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Provider } from "urql";
import { App } from "./app";
import { makeClient } from "./client";
import "./style.css";

const root = document.getElementById("page");
if (root === null) throw new Error("index.html has no element #page");
createRoot(root).render(
  <StrictMode>
    <Provider value={makeClient()}>
      <App />
    </Provider>
  </StrictMode>,
);
