import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { silentLogger } from "@hone/telemetry";
import { LiveFeed } from "./live-feed.ts";

describe("LiveFeed", () => {
  test("reports to every page each run that changed after the page was opened", async () => {
    const revisions = new Map([["a", 1]]);
    const ending = new AbortController();
    const feed = new LiveFeed(async () => new Map(revisions), silentLogger(), ending.signal);
    const pages = await Promise.all([feed.open(ending.signal), feed.open(ending.signal)]);
    revisions.set("a", 2).set("b", 1);
    for (const page of pages) assert.deepEqual((await page.next()).value, new Set(["a", "b"]));
    ending.abort();
    for (const page of pages) assert.equal((await page.next()).done, true);
  });

  test("does not read the database while no page is open", async () => {
    let reads = 0;
    const ending = new AbortController();
    const feed = new LiveFeed(
      async () => {
        reads++;
        return new Map([["a", reads]]);
      },
      silentLogger(),
      ending.signal,
    );
    assert.equal(reads, 0);
    const gone = new AbortController();
    const page = await feed.open(gone.signal);
    await page.next();
    gone.abort();
    assert.equal((await page.next()).done, true);
    const again = await feed.open(ending.signal);
    await again.next();
    ending.abort();
  });

  test("continues after a failed read of the database", async () => {
    let reads = 0;
    const ending = new AbortController();
    const feed = new LiveFeed(
      async () => {
        reads++;
        if (reads === 2) throw new Error("away");
        return new Map([["a", reads]]);
      },
      silentLogger(),
      ending.signal,
    );
    const page = await feed.open(ending.signal);
    assert.deepEqual((await page.next()).value, new Set(["a"]));
    assert.equal(reads, 3);
    ending.abort();
  });
});
