import { expect, test } from "vitest";
import { hrefOf, parse } from "./route";

test("every address leads back to where it was made", () => {
  const id = "a/b #1:ü";
  expect(parse(hrefOf.session(id))).toEqual({ page: "session", id, tab: "conversation" });
  expect(parse(hrefOf.session(id, "log"))).toEqual({ page: "session", id, tab: "log" });
  expect(parse(hrefOf.run(id, "turn/1"))).toEqual({ page: "run", sessionId: id, turnId: "turn/1" });
  expect(parse(hrefOf.forest(id))).toEqual({ page: "forest", id });
  expect(parse(hrefOf.digests())).toEqual({ page: "digests" });
});

test("an address that leads nowhere leads to the forest", () => {
  for (const hash of ["", "#", "#/nothing", "#/session", "#/run/only", "#/%E0%A4%A"]) {
    expect(parse(hash)).toEqual({ page: "forest", id: undefined });
  }
});
