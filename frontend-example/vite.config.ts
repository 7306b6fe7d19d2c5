import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const server = process.env.SAPWOOD_URL ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  // The page asks /graphql where it came from; while developing, Vite passes that on to a running server.
  server: { proxy: { "/graphql": { target: server, ws: true, changeOrigin: true } } },
  // A strict content policy allows no data: scripts and no inline ones.
  build: { assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  test: {
    projects: [
      { test: { name: "pieces", include: ["src/**/*.test.ts"] } },
      { test: { name: "pictures", include: ["tests/pictures.ts"], testTimeout: 120_000 } },
      {
        test: {
          name: "browser",
          include: ["tests/**/*.test.ts"],
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 10_000 } },
        },
      },
    ],
  },
});
