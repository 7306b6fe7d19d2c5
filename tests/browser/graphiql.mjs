// Uses GraphiQL in Chromium as a person would, and prints what it saw as JSON.
// Usage: node graphiql.mjs SERVER CHROMIUM PROFILE SESSION [SCREENSHOT]
import { chromium } from "playwright-core";

const [server, executablePath, profile, session, screenshot] = process.argv.slice(2);
const seen = { problems: [], foreign: [], done: false };
const context = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  viewport: { width: 1400, height: 900 },
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});

async function graphql(query, variables) {
  const answer = await fetch(`${server}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query, variables }),
  });
  return answer.json();
}

try {
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) seen.problems.push(message.text());
  });
  page.on("pageerror", (error) => seen.problems.push(String(error)));
  page.on("requestfailed", (request) => seen.problems.push(`failed: ${request.url()}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(`${server}/`) && !request.url().startsWith("data:")) seen.foreign.push(request.url());
  });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
    });
  });

  const run = () => page.locator(".graphiql-execute-button").click();
  const open = (title) => page.locator(".graphiql-tab-button", { hasText: title }).click();
  const result = (text) => page.locator(".result-window", { hasText: text }).waitFor();

  await page.goto(`${server}/graphql`);
  await page.locator(".graphiql-query-editor .CodeMirror").waitFor();
  seen.tabs = await page.locator(".graphiql-tab-button").allTextContents();

  await open("Viewer");
  await run();
  await result('"space": "default"');

  await graphql("mutation($id: ID!) { createSession(input: {id: $id}) { session { id } } }", { id: session });
  const append = `mutation($id: ID!, $text: String!) {
    appendEvents(input: {sessionId: $id, events: [{userMessage: {content: $text}}]}) { head } }`;
  await graphql(append, { id: session, text: "stored before" });
  await open("Follow");
  await page.locator(".graphiql-editor-tool .CodeMirror").first().evaluate((element, id) => {
    element.CodeMirror.setValue(JSON.stringify({ id }));
  }, session);
  // Until GraphiQL has recorded the operation of the newly opened tab, it sends that of the previous one.
  await page.waitForFunction(() => localStorage.getItem("graphiql:operationName") === "Follow");
  await run();
  await result("stored before");
  await graphql(append, { id: session, text: "appended while open" });
  await result("appended while open");
  if (screenshot) await page.screenshot({ path: screenshot });
  await run();

  // The settings dialog and the documentation explorer.
  await page.locator('button[aria-label="Open settings dialog"]').click();
  await page.locator(".graphiql-dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".graphiql-dialog").waitFor({ state: "detached" });
  await page.locator('button[aria-label="Show Documentation Explorer"]').click();
  await page.locator(".graphiql-doc-explorer", { hasText: "subscription" }).waitFor();
  seen.done = true;
} catch (error) {
  seen.problems.push(String(error));
} finally {
  await context.close();
}
console.log(JSON.stringify(seen));
