/** A real server on real data, and a real browser to look at it. */

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium, type Browser } from "playwright-core";

const ROOT = resolve(import.meta.dirname, "../..");
const SAPWOOD = process.env.SAPWOOD ?? join(ROOT, ".venv/bin/sapwood");
const CHROMIUM = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync) ?? "chromium";
export const LOGS = join(ROOT, "tests/data");
export const SAMPLES = join(ROOT, "server/samples");

/** `sapwood serve`, or `demo`, as a process of its own. It keeps its port and its data from one start to the next. */
export class Server {
  private process: ChildProcess | undefined;

  private constructor(
    private readonly folder: string,
    private readonly port: number,
  ) {}

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** A server that is not started yet, with the sessions of these files. */
  static async with(...files: string[]): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), "sapwood-page-"));
    if (files.length > 0) {
      execFileSync(SAPWOOD, ["import", "--data-dir", join(folder, "data"), ...files], { stdio: "ignore" });
    }
    return new Server(folder, await freePort());
  }

  async start(command: "serve" | "demo" = "serve") {
    const data = join(this.folder, "data");
    const started = spawn(SAPWOOD, [command, "--port", String(this.port), "--data-dir", data], { stdio: ["ignore", "ignore", "inherit"] });
    this.process = started;
    const deadline = Date.now() + 30_000;
    while (!(await this.answers())) {
      if (started.exitCode !== null || Date.now() > deadline) throw new Error("the server did not start");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  private async answers(): Promise<boolean> {
    try {
      return (await fetch(`${this.url}/readyz`)).ok;
    } catch {
      return false;
    }
  }

  async stop() {
    const { process } = this;
    if (process === undefined) return;
    this.process = undefined;
    const ended = new Promise((resolve) => process.once("exit", resolve));
    process.kill("SIGTERM");
    await ended;
  }

  async remove() {
    await this.stop();
    rmSync(this.folder, { recursive: true });
  }

  /** Asks as any client would. */
  async ask<Data>(query: string, variables: object = {}): Promise<Data> {
    const response = await fetch(`${this.url}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await response.json()) as { data: Data; errors?: { message: string }[] };
    if (errors) throw new Error(errors.map((error) => error.message).join("; "));
    return data;
  }

  async append(sessionId: string, ...events: object[]) {
    await this.ask("mutation ($input: AppendEventsInput!) { appendEvents(input: $input) { head } }", {
      input: { sessionId, events },
    });
  }
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

export function launch(): Promise<Browser> {
  const quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath: CHROMIUM, args: ["--headless", "--no-sandbox", "--disable-gpu", ...quiet] });
}
