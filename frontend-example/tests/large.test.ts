import { writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, Server } from "./server";

const NODES = 5_000;
const FIRST_PICTURE_MS = 2_000;
const LONGEST_FRAME_MS = 100;
const TRIES = 5;

let server: Server;
let browser: Browser;

beforeAll(async () => {
  const file = join(await mkdtemp(join(tmpdir(), "sapwood-forest-")), "forest.jsonl");
  writeFileSync(file, forestOf(NODES));
  server = await Server.with(file);
  await server.start();
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
  await server.remove();
});

/** Trees as they grow where agents start agents: a few roots, broad near them, some branches long. */
function forestOf(nodes: number): string {
  const lines: string[] = [];
  let state = 7;
  const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  for (let index = 0; index < nodes; index++) {
    const parent = index < 40 ? null : Math.floor(random() ** 1.4 * Math.min(index, 1_600));
    const header = { type: "session", format: "sapwood", version: 1, id: `n${index}`, label: `Session number ${index}` };
    lines.push(JSON.stringify({ ...header, ...(parent === null ? {} : { parentId: `n${parent}` }) }));
    for (let turn = 0; turn < index % 3; turn++) {
      lines.push(JSON.stringify({ seq: 2 * turn, type: "turn/start", turnId: `${turn}` }));
      lines.push(JSON.stringify({ seq: 2 * turn + 1, type: "turn/end", turnId: `${turn}` }));
    }
  }
  return `${lines.join("\n")}\n`;
}

/** The longest time between two frames while `act` goes on, in milliseconds. */
async function longestFrame(page: Page, act: () => Promise<void>): Promise<number> {
  await page.evaluate(() => {
    const measured = { longest: 0, last: performance.now(), over: false };
    const tick = (now: number) => {
      measured.longest = Math.max(measured.longest, now - measured.last);
      measured.last = now;
      if (!measured.over) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
    Object.assign(globalThis, { measured });
  });
  await act();
  return page.evaluate(() => {
    const { measured } = globalThis as unknown as { measured: { longest: number; over: boolean } };
    measured.over = true;
    return measured.longest;
  });
}

/** The best of a few tries: what else the machine does meanwhile is no fault of the page's, and spoils some of them. */
async function best(measure: () => Promise<number>, allowed: number, what: string) {
  let least = Infinity;
  for (let left = TRIES; left > 0 && least >= allowed; left--) least = Math.min(least, await measure());
  console.log(`5,000 nodes: ${what} ${least.toFixed(0)} ms (allowed: ${allowed})`);
  expect(least, what).toBeLessThan(allowed);
}

test("5,000 nodes: the first picture comes soon, and panning stays smooth near and far", { timeout: 180_000 }, async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.addInitScript(() => {
    // The moment at which the answer is there, before anything is made of it.
    const Real = WebSocket;
    globalThis.WebSocket = class extends Real {
      constructor(url: string | URL, protocols?: string | string[]) {
        super(url, protocols);
        this.addEventListener("message", ({ data }: MessageEvent<string>) => {
          if (data.includes("ForestSnapshot")) performance.mark("forest arrived");
        });
      }
    };
  });
  const show = async () => {
    await page.goto(server.url);
    await page.getByText("5,000 sessions").waitFor();
    await page.waitForFunction(() => performance.getEntriesByName("forest painted").length > 0);
    return page.evaluate(() => {
      const at = (name: string) => performance.getEntriesByName(name)[0]?.startTime ?? NaN;
      return at("forest painted") - at("forest arrived");
    });
  };
  await best(show, FIRST_PICTURE_MS, "first picture after");

  const pan = () =>
    longestFrame(page, async () => {
      await page.mouse.move(640, 400);
      await page.mouse.down();
      for (let step = 0; step < 90; step++) {
        await page.mouse.move(640 + 180 * Math.sin(step / 9), 400 + 250 * Math.cos(step / 14));
      }
      await page.mouse.up();
    });
  // What a zoom has set going comes to rest before the panning is measured.
  const rest = () => page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 800)));
  await rest();
  await best(pan, LONGEST_FRAME_MS, "panning near, longest frame");
  await page.mouse.move(640, 400);
  for (let turn = 0; turn < 6; turn++) await page.mouse.wheel(0, 240);
  await rest();
  await best(pan, LONGEST_FRAME_MS, "panning half way, longest frame");
  await page.getByRole("button", { name: "Show the whole forest" }).click();
  await rest();
  await best(pan, LONGEST_FRAME_MS, "panning over the whole, longest frame");
});
