import { createRequire } from "node:module";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { launch, LOGS, SAMPLES, Server } from "./server";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const harness = (name: string) => join(LOGS, "deepseek-harness", name);

let server: Server;
let browser: Browser;
let page: Page;
let said: string[] = [];

beforeAll(async () => {
  server = await Server.with(
    join(SAMPLES, "greenhouse.jsonl"),
    join(SAMPLES, "journey.jsonl"),
    join(harness("subagent-fork-in-process"), "session.jsonl"),
    join(harness("subagent-fork-in-process"), "session.1.jsonl"),
    join(harness("subagent-multi"), "session.jsonl"),
    join(harness("subagent-multi"), "session.1.jsonl"),
    join(harness("subagent-multi"), "session.2.jsonl"),
    join(LOGS, "oasst/en_100_tree.lines001-060.jsonl"),
  );
  await server.start();
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
  await server.remove();
});

afterEach(async () => {
  await page.context().close();
  // Neither the page nor its content policy has had anything to complain of, but for the server being away.
  expect(said.filter((line) => !/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|WebSocket connection/.test(line))).toEqual([]);
});

async function open(address: string, options: Parameters<Browser["newContext"]>[0] = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  page = await context.newPage();
  said = [];
  page.on("pageerror", (error) => said.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") said.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(server.url)) said.push(`asked ${request.url()}`);
  });
  await page.goto(`${server.url}/${address}`);
  await page.getByRole("status").getByText("Live").waitFor();
}

async function create(label: string, ...events: object[]): Promise<string> {
  const { createSession } = await server.ask<{ createSession: { session: { id: string } } }>(
    "mutation ($label: String) { createSession(input: {label: $label}) { session { id } } }",
    { label },
  );
  if (events.length > 0) await server.append(createSession.session.id, ...events);
  return createSession.session.id;
}

const count = async () =>
  (await server.ask<{ forest: { nodeCount: number } }>("{ forest { nodeCount } }")).forest.nodeCount;
const talk = () => page.getByRole("list", { name: "Conversation" });

/** How many different colours a canvas shows. */
const coloursOf = () =>
  page.locator("canvas").evaluate((canvas: HTMLCanvasElement) => {
    const pixels = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
    const colours = new Set<number>();
    for (let at = 0; at < pixels.length; at += 4) {
      colours.add(((pixels[at] ?? 0) << 16) | ((pixels[at + 1] ?? 0) << 8) | (pixels[at + 2] ?? 0));
    }
    return colours.size;
  });

test("the forest is drawn, found in by label, and walked through by keys", async () => {
  await open("");
  await page.getByText(`${await count()} sessions`).waitFor();
  await expect.poll(coloursOf).toBeGreaterThan(20);
  await page.getByRole("combobox").fill("drip");
  await page.getByRole("option", { name: "What if: drip lines" }).waitFor();
  await page.keyboard.press("Enter");
  const chosen = page.getByRole("complementary", { name: "Chosen session" });
  await chosen.getByRole("heading", { name: "What if: drip lines" }).waitFor();
  await chosen.getByText("at 9").waitFor();
  await page.getByRole("tree").focus();
  await page.keyboard.press("ArrowLeft");
  await chosen.getByRole("heading", { name: "Irrigation of bed 3" }).waitFor();
  const active = page.getByRole("treeitem");
  expect(await active.getAttribute("aria-expanded")).toBe("true");
  await page.keyboard.press("ArrowLeft");
  await expect.poll(() => active.getAttribute("aria-expanded")).toBe("false");
  expect(await active.textContent()).toContain("1 hidden node");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await chosen.getByRole("heading", { name: "What if: drip lines" }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "What if: drip lines" }).waitFor();
});

test("a new session grows into the forest by itself", async () => {
  await open("");
  await page.getByText(`${await count()} sessions`).waitFor();
  await create("Just planted");
  await page.getByText(`${await count()} sessions`).waitFor();
  await page.getByRole("combobox").fill("just planted");
  await page.getByRole("option", { name: "Just planted" }).waitFor();
});

test("a session of a real log is read: conversation with folded calls, surface, log, runs", async () => {
  const { forest } = await server.ask<{ forest: { nodes: { id: string; head: number }[] } }>(
    "{ forest { nodes { id head } } }",
  );
  const { id, head } = await withCalls(forest.nodes);
  await open(`#/session/${id}`);
  const folded = talk().locator("details").first();
  await folded.waitFor();
  expect(await folded.locator("pre").first().isVisible()).toBe(false);
  await folded.locator("summary").click();
  await folded.locator("pre").first().waitFor();
  await page.getByRole("link", { name: "Surface" }).click();
  await page.getByText(`as of event ${head}`).waitFor();
  await page.getByRole("link", { name: "Log" }).click();
  await expect.poll(seqsShown).toContain(head - 1);
  await page.getByLabel("Looks at the session").getByRole("link", { name: "Runs" }).click();
  await page.getByRole("list", { name: "Runs" }).getByRole("listitem").first().waitFor();
});

/** A session of a real log, not of our samples, in which tools were called. */
async function withCalls<Node extends { id: string }>(nodes: Node[]): Promise<Node> {
  for (const node of nodes.filter(({ id }) => !/^(greenhouse|journey)/.test(id))) {
    const { session } = await server.ask<{ session: { stats: { toolCallCount: number } } }>(
      "query ($id: ID!) { session(id: $id) { stats { toolCallCount } } }",
      { id: node.id },
    );
    if (session.stats.toolCallCount > 0) return node;
  }
  throw new Error("no log has a call");
}

const seqsShown = async () => (await page.locator(".log .seq").allTextContents()).map(Number);

test("an answer streams in chunk by chunk, and is there once when it is whole", async () => {
  const id = await create("Streaming", { turnStart: { turnId: "t" } }, { stepStart: { stepId: "s" } });
  await open(`#/session/${id}`);
  await page.getByText("Nothing has been said yet.").waitFor();
  await server.append(id, { assistantChunk: { delta: "The first " } });
  await talk().getByText("The first", { exact: true }).waitFor();
  await server.append(id, { assistantChunk: { delta: "and the second" } });
  await talk().getByText("The first and the second").waitFor();
  expect(await talk().getByRole("article").getAttribute("aria-busy")).toBe("true");
  await server.append(id, { assistantMessage: { content: "The first and the second." } }, { turnEnd: { turnId: "t" } });
  await expect.poll(() => talk().getByRole("article").getAttribute("aria-busy")).toBe("false");
  expect(await talk().getByRole("article").allTextContents()).toEqual([
    expect.stringContaining("The first and the second."),
  ]);
});

test("a message that is appended here is in the log once", async () => {
  const id = await create("Written to");
  await open(`#/session/${id}`);
  await page.getByLabel("Message").fill("Hello from the page");
  await page.getByRole("button", { name: "Append" }).click();
  await talk().getByText("Hello from the page").waitFor();
  const { session } = await server.ask<{ session: { head: number } }>("query ($id: ID!) { session(id: $id) { head } }", { id });
  expect(session.head).toBe(1);
});

test("a fork from a message shares all up to it, and is a new node", async () => {
  const before = await count();
  await open("#/session/greenhouse");
  const entry = talk().getByRole("listitem").filter({ hasText: "Then let us look after bed 3 first." });
  await entry.hover();
  await entry.getByRole("button", { name: "Fork from here" }).click();
  await page.getByText("fork of").waitFor();
  const id = decodeURIComponent(page.url().split("/").at(-1) ?? "");
  const { topologyNode } = await server.ask<{ topologyNode: { forkSeq: number; sourceSessionId: string } }>(
    "query ($id: ID!) { topologyNode(id: $id) { forkSeq sourceSessionId } }",
    { id },
  );
  expect(topologyNode).toEqual({ forkSeq: 15, sourceSessionId: "greenhouse" });
  await page.getByRole("link", { name: "Forest" }).first().click();
  await page.getByText(`${before + 1} sessions`).waitFor();
});

test("cards are drawn as what they are, and a broken one is a placeholder among them", async () => {
  const id = await create(
    "Cards",
    { userMessage: { content: "Show me" } },
    { card: { cardType: "Table", card: { type: "Table", title: "Depths", columnNames: ["Well", "m"], rows: [["A", 12]] } } },
    { card: { cardType: "Form", card: { type: "Form", formId: "well", title: "Well", fields: [{ id: "d", label: "Depth" }] } } },
    { card: { cardType: "WorkflowStatus", card: { type: "WorkflowStatus", steps: [{ id: "a", displayName: "Load", status: "done" }] } } },
    { card: { cardType: "ParameterSet", payload: "type: ParameterSet\nitems:\n- {name: Cell, valueText: 50 m}\n" } },
    { card: { cardType: "Table", payload: "rows: [unclosed" } },
    { assistantMessage: { content: "That is all." } },
  );
  await open(`#/session/${id}`);
  await talk().getByRole("cell", { name: "12" }).waitFor();
  await talk().getByText("Read-only").waitFor();
  await talk().getByText("Load", { exact: true }).waitFor();
  await talk().getByText("50 m").waitFor();
  await talk().getByRole("region", { name: "Card that can’t be shown" }).getByText(/line 2/).waitFor();
  await talk().getByText("That is all.").waitFor();
});

test("a form with a definition is sent as its next version", async () => {
  await server.ask('mutation { putFormDefinition(formId: "pump", definition: {}) { formDefinition { formId } } }');
  const card = { type: "Form", id: "f", formId: "pump", fields: [{ id: "d", label: "Depth" }], submitLabel: "Set" };
  const id = await create("Form", { card: { cardType: "Form", card } });
  await open(`#/session/${id}`);
  await talk().getByLabel("Depth").fill("12");
  await talk().getByRole("button", { name: "Set" }).click();
  await talk().getByText("Sent.").waitFor();
  expect(await talk().getByRole("listitem").count()).toBe(1);
  expect(await talk().getByLabel("Depth").inputValue()).toBe("12");
});

test("an insight goes to several sessions at once, and a memory is written", async () => {
  const ids = [await create("Receiver one"), await create("Receiver two")];
  await open("#/digests");
  for (const name of ["one", "two"]) await page.getByRole("checkbox", { name: `Choose Receiver ${name}` }).check();
  await page.getByLabel("Insight to 2 sessions").fill("Frost tonight");
  await page.getByRole("button", { name: "Send" }).click();
  await expect.poll(() => page.getByRole("cell", { name: "Frost tonight" }).count()).toBe(2);
  const { sessions } = await server.ask<{ sessions: { insight: { content: string } }[] }>(
    "query ($ids: [ID!]!) { sessions(ids: $ids) { insight { content } } }",
    { ids },
  );
  expect(sessions.map((session) => session.insight.content)).toEqual(["Frost tonight", "Frost tonight"]);
  await page.getByRole("button", { name: "Write memory of Receiver one" }).click();
  await page.getByRole("textbox", { name: "Memory of Receiver one" }).fill("Knows of the frost");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("cell", { name: "Knows of the frost" }).waitFor();
});

test("digests follow what happens elsewhere", async () => {
  const id = await create("Watched");
  await open("#/digests");
  const row = page.getByRole("row", { name: "Watched" });
  await row.waitFor();
  await server.append(id, { userMessage: { content: "One" } }, { userMessage: { content: "Two" } });
  await row.getByText("2 events behind").waitFor();
});

test("the server is stopped and started: the page says so, and the rest arrives exactly once", async () => {
  const id = await create("Interrupted", ...numbered(0, 5));
  await open(`#/session/${id}/log`);
  await expect.poll(seqsShown).toEqual([0, 1, 2, 3, 4]);
  for (const [begin, end] of [[5, 9], [9, 300]] as const) {
    await server.append(id, ...numbered(begin, begin + 2));
    await expect.poll(seqsShown).toEqual(Array.from({ length: begin + 2 }, (_, seq) => seq));
    await server.stop();
    await page.getByRole("status").getByText("Reconnecting").waitFor();
    await server.start();
    // What is appended before the page is back, and while it catches up.
    await server.append(id, ...numbered(begin + 2, end - 1));
    await page.getByRole("status").getByText("Live").waitFor();
    await server.append(id, ...numbered(end - 1, end));
    await expect.poll(seqsShown, { timeout: 20_000 }).toEqual(Array.from({ length: end }, (_, seq) => seq));
  }
  await page.getByRole("link", { name: "Conversation" }).click();
  await talk().getByText("Message 299.").waitFor();
  const texts = await talk().getByRole("article").allTextContents();
  expect(new Set(texts).size).toBe(texts.length);
});

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => ({ userMessage: { content: `Message ${from + index}.` } }));

test("the forest catches up after a restart", async () => {
  await open("");
  await page.getByText(`${await count()} sessions`).waitFor();
  await server.stop();
  await page.getByRole("status").getByText("Reconnecting").waitFor();
  await server.start();
  await create("Planted while nobody looked");
  await page.getByText(`${await count()} sessions`).waitFor();
});

test("a query that met no server is asked again, and says meanwhile that it could not be", async () => {
  await open("#/digests");
  await server.stop();
  await page.getByRole("status").getByText("Reconnecting").waitFor();
  await page.getByRole("link", { name: "Runs" }).click();
  await page.getByRole("alert").getByText("The server can’t be reached").waitFor();
  await server.start();
  await page.getByRole("list", { name: "Runs" }).getByRole("listitem").first().waitFor();
  await page.getByRole("alert").waitFor({ state: "detached" });
});

test("a refusal is said in words, where it belongs", async () => {
  const id = await create("Contested");
  await open(`#/session/${id}`);
  await page.getByRole("button", { name: "Write memory" }).click();
  await page.getByRole("textbox", { name: "Memory" }).fill("Mine");
  const put = "mutation ($id: ID!) { putMemory(input: {sessionId: $id, content: \"Theirs\"}) { slot { version } } }";
  await server.ask(put, { id });
  await server.ask(put, { id });
  await page.getByRole("textbox", { name: "Memory" }).fill("Mine too");
  await server.ask("mutation ($id: ID!) { archiveSession(id: $id) { session { id } } }", { id });
  await page.getByRole("button", { name: "Save" }).click();
  const slots = page.getByRole("complementary", { name: "Slots" });
  await slots.getByRole("alert").getByText("ARCHIVED").waitFor();
  await page.getByText("Archived: it can be read and forked").waitFor();
});

test("a stale write of a slot is refused", async () => {
  const id = await create("Stale");
  const put = "mutation ($id: ID!) { putMemory(input: {sessionId: $id, content: \"Theirs\"}) { slot { version } } }";
  await server.ask(put, { id });
  await open(`#/session/${id}`);
  await page.getByText("Theirs").waitFor();
  await page.getByRole("button", { name: "Write memory" }).click();
  await server.ask(put, { id });
  await page.getByRole("textbox", { name: "Memory" }).fill("Mine");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").getByText("Somebody else wrote meanwhile").waitFor();
});

test("a session that is not there is said to be so", async () => {
  await open("#/session/nobody");
  await page.getByRole("heading", { name: "No such session" }).waitFor();
});

test("runs are listed, filtered, and one is drawn over time and given feedback", async () => {
  const id = await create(
    "Failing",
    { turnStart: { turnId: "t", query: "Would it work by car?" } },
    { stepStart: { stepId: "s", agentName: "guide" } },
    { toolCall: { callId: "c", name: "route", args: {} } },
    { toolResult: { callId: "c", error: "The map service did not answer.", durationMs: 20 } },
    { stepEnd: { stepId: "s", tokenCount: 1_234 } },
    { turnEnd: { turnId: "t", status: "FAILED", error: "No route was found." } },
  );
  await open("#/runs");
  const runs = page.getByRole("list", { name: "Runs" }).getByRole("listitem");
  await runs.filter({ hasText: "success" }).first().waitFor();
  await page.getByRole("button", { name: "failed" }).click();
  await runs.filter({ hasText: "success" }).first().waitFor({ state: "detached" });
  await page.getByLabel("Tool").fill("route");
  const mine = runs.filter({ hasText: "Would it work by car?" });
  await mine.getByText("No route was found.").waitFor();
  await mine.getByRole("link").click();
  const timeline = page.getByRole("region", { name: "Timeline" });
  await timeline.getByText("1,234 tokens").waitFor();
  await timeline.getByRole("button", { name: /route failed/ }).click();
  await timeline.getByText("The map service did not answer.").waitFor();
  await page.getByLabel("Feedback on this run").fill("Try the train");
  await page.getByRole("button", { name: "Save" }).click();
  const feedback = "query ($id: ID!) { run(sessionId: $id, turnId: \"t\") { feedback } }";
  await expect
    .poll(async () => (await server.ask<{ run: { feedback: string } }>(feedback, { id })).run.feedback)
    .toBe("Try the train");
  await expect.poll(() => page.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
});

const PLACES = {
  forest: "#/forest/greenhouse",
  session: "#/session/greenhouse",
  surface: "#/session/greenhouse/surface",
  log: "#/session/greenhouse/log",
  runs: "#/runs",
  run: "#/run/greenhouse/turn-1",
  digests: "#/digests",
};

/** Something that each page shows once it has been answered. */
const ANSWERED = ".inspector .facts, .entries .entry, .messages li, .log li, .runs li, .timeline li, .digests tbody tr";

test.each(Object.entries(PLACES))("%s: no serious fault for axe, in both colour schemes and at a phone's width", async (_, place) => {
  for (const colorScheme of ["light", "dark"] as const) {
    for (const width of [1200, 375]) {
      await open(place, { colorScheme, viewport: { width, height: 800 }, reducedMotion: "reduce" });
      await page.locator(ANSWERED).first().waitFor();
      await page.evaluate(await readAxe());
      const faults = await page.evaluate(async () => {
        const { violations } = await (globalThis as unknown as Axe).axe.run();
        return violations
          .filter(({ impact }) => impact === "serious" || impact === "critical")
          .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
      });
      expect(faults, `${colorScheme}, ${width}`).toEqual([]);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(wide, `${colorScheme}, ${width}: wider than the window`).toBeLessThanOrEqual(0);
      if (width === 1200) await page.context().close();
    }
    if (colorScheme === "light") await page.context().close();
  }
});

interface Axe {
  axe: { run: () => Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }> };
}

async function readAxe(): Promise<string> {
  const { readFile } = await import("node:fs/promises");
  return readFile(AXE, "utf8");
}

test("light and dark are two schemes, and the choice of one is kept", async () => {
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  await open("", { colorScheme: "light" });
  const light = await ground();
  await page.getByRole("button", { name: /^Colours/ }).click();
  await page.getByRole("button", { name: /^Colours: light/ }).click();
  await expect.poll(ground).not.toBe(light);
  await page.reload();
  expect(await ground()).not.toBe(light);
});
