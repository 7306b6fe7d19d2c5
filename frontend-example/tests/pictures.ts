/** Takes the pictures of README from the demo: `npm run pictures`, after a build. */

import { join } from "node:path";
import { test } from "vitest";
import { launch, Server } from "./server";

const picture = (name: string) => join(import.meta.dirname, "../pictures", `${name}.png`);

test("pictures", async () => {
  const server = await Server.with();
  await server.start("demo");
  const browser = await launch();
  try {
    const viewport = { width: 1200, height: 720 };
    const forest = await browser.newPage({ viewport, colorScheme: "light" });
    await forest.goto(`${server.url}/#/forest`);
    await forest.getByRole("combobox").fill("drip");
    await forest.getByRole("option").first().click();
    await forest.getByRole("combobox").fill("");
    await forest.getByText("Four drip lines").waitFor();
    // Some rounds of the live replay, and the middle of the next.
    await forest.waitForTimeout(24_000);
    await forest.getByRole("button", { name: "Show the whole forest" }).click();
    await forest.waitForTimeout(1_500);
    await forest.screenshot({ path: picture("forest") });

    const session = await browser.newPage({ viewport, colorScheme: "dark" });
    await session.goto(`${server.url}/#/session/greenhouse`);
    await session.getByRole("cell", { name: "Basil" }).waitFor();
    await session.screenshot({ path: picture("session") });
  } finally {
    await browser.close();
    await server.remove();
  }
});
