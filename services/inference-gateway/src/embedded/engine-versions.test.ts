import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PAGE_ROWS } from "@hone/nn";
import { FinishReason } from "@hone/rl";
import { VersionBehindError, VersionStaleError } from "../domain/errors.ts";
import type { EngineEvent } from "./messages.ts";
import { HashRunner } from "./testing/hash-runner.ts";
import { alone, coreWith, finish, request, sampleOf } from "./testing/run-core.ts";

describe("versions of EngineCore", () => {
  test("moves running sequences to a new version if their range allows, and labels each token with its version", async () => {
    const { core, runner } = await coreWith();
    const sampling = { ...request().sampling, maxNewTokens: 6, stopTokenIds: [] };
    const moving = request({ sampling });
    const pinned = request({ sampling, versionRange: { lowest: 1, highest: 1 } });
    core.submit(moving, false);
    core.submit(pinned, false);
    for (let i = 0; i < 3; i++) await core.step();
    const next = new HashRunner({ salt: 77 });
    const installed = core.install("m", 2, next);
    const { results } = await finish(core);
    await installed;
    const moved = results.get(moving.id)!;
    assert.deepEqual(moved.versions, [
      { version: 1, tokenCount: 3 },
      { version: 2, tokenCount: 3 },
    ]);
    assert.deepEqual(results.get(pinned.id)!.versions, [{ version: 1, tokenCount: 6 }]);
    assert.deepEqual(sampleOf(results.get(pinned.id)), sampleOf(await alone(pinned)));
    assert.ok(runner.isDisposed, "the old version is dropped once nothing needs it");
    // The new version alone gives the same last tokens for the same context, so no K/V of the old one was used.
    const tail = request({
      promptIds: [...moving.promptIds, ...moved.tokenIds.slice(0, 3)],
      sampling: { ...sampling, maxNewTokens: 3 },
    });
    core.submit(tail, false);
    assert.deepEqual((await finish(core)).results.get(tail.id)!.tokenIds, moved.tokenIds.slice(3));
  });

  test("a sequence that finishes stays on its version, and one that has no token yet begins on the new one", async () => {
    const { core } = await coreWith({}, { maxSequences: 1 });
    const sampling = { ...request().sampling, maxNewTokens: 6, stopTokenIds: [] };
    const staying = request({ sampling, onNewVersion: "finish" });
    const waiting = request({ sampling, onNewVersion: "finish" });
    core.submit(staying, false);
    core.submit(waiting, false);
    for (let i = 0; i < 3; i++) await core.step();
    const installed = core.install("m", 2, new HashRunner({ salt: 77 }));
    const { results } = await finish(core);
    await installed;
    assert.deepEqual(results.get(staying.id)!.versions, [{ version: 1, tokenCount: 6 }]);
    assert.deepEqual(sampleOf(results.get(staying.id)), sampleOf(await alone(staying)));
    assert.deepEqual(results.get(waiting.id)!.versions, [{ version: 2, tokenCount: 6 }]);
  });

  test("a sequence whose K/V is kept goes on without computing its context again, and no other one uses that K/V", async () => {
    const { core, runner } = await coreWith();
    const sampling = { ...request().sampling, maxNewTokens: 6, stopTokenIds: [] };
    const promptIds = Array.from({ length: 2 * PAGE_ROWS + 3 }, (_, i) => i % 16);
    const kept = request({ promptIds, sampling, onNewVersion: "keep" });
    core.submit(kept, false);
    for (let i = 0; i < 3; i++) await core.step();
    const next = new HashRunner({ salt: 77 });
    const installed = core.install("m", 2, next);
    const { results } = await finish(core);
    await installed;
    const moved = results.get(kept.id)!;
    assert.deepEqual(moved.versions, [
      { version: 1, tokenCount: 3 },
      { version: 2, tokenCount: 3 },
    ]);
    assert.deepEqual(
      next.runs.map(({ tokens }) => tokens),
      [1, 1, 1],
    );
    // A hash of the old state and the same tokens is that of the old version, whose salt is only in its first row.
    assert.deepEqual(sampleOf(moved), sampleOf(await alone(request({ ...kept, id: "alone" }))));
    assert.ok(runner.isDisposed);

    const tail = request({ promptIds: [...promptIds, ...moved.tokenIds.slice(0, 3)], sampling });
    core.submit(tail, false);
    const after = (await finish(core)).results.get(tail.id)!;
    assert.equal(after.metrics.cachedTokens, 0);
    assert.notDeepEqual(after.tokenIds.slice(0, 3), moved.tokenIds.slice(3));
  });

  test("a sequence whose K/V does not fit into the new version's memory is computed again", async () => {
    const { core } = await coreWith();
    const sampling = { ...request().sampling, maxNewTokens: 6, stopTokenIds: [] };
    const promptIds = Array.from({ length: 2 * PAGE_ROWS + 3 }, (_, i) => i % 16);
    const [first, second] = [1, 2].map(() => request({ promptIds, sampling, onNewVersion: "keep" }));
    for (const each of [first!, second!]) core.submit(each, false);
    for (let i = 0; i < 3; i++) await core.step();
    // Three pages for one sequence, one for what it still samples, and the page of zeros: too few for both.
    const installed = core.install("m", 2, new HashRunner({ salt: 77, pageCapacity: 6 }));
    const { results } = await finish(core);
    await installed;
    for (const { id } of [first!, second!]) {
      assert.equal(results.get(id)!.tokenIds.length, 6);
      assert.equal(results.get(id)!.finishReason, FinishReason.length);
    }
    assert.notDeepEqual(
      results.get(first!.id)!.tokenIds.slice(3),
      results.get(second!.id)!.tokenIds.slice(3),
    );
  });

  test("ends sequences that a new version makes too old, and moves the others", async () => {
    const { core } = await coreWith();
    const sampling = { ...request().sampling, maxNewTokens: 9, stopTokenIds: [] };
    const begun = request({ id: "begun", sampling, maxStaleness: 1 });
    // A later call of a rollout whose first token is of version 0.
    const bound = request({
      id: "bound",
      sampling,
      versionRange: { lowest: 0, highest: 1 },
      maxStaleness: 1,
    });
    const pinned = request({ id: "pinned", sampling, versionRange: { lowest: 1, highest: 1 } });
    for (const each of [begun, bound, pinned]) core.submit(each, false);
    const events: EngineEvent[] = [];
    const install = async (version: number) => {
      for (let i = 0; i < 2; i++) await core.step();
      const installed = core.install("m", version, new HashRunner({ salt: version }));
      await core.step();
      await installed;
      events.push(...core.takeEvents());
      return events.flatMap((event) =>
        event.kind === "failed" && event.error instanceof VersionStaleError ? [event.id] : [],
      );
    };
    assert.deepEqual(await install(2), ["bound"]);
    core.submit(request({ id: "fresh", sampling, maxStaleness: 1 }), false);
    assert.deepEqual(await install(3), ["bound", "begun"]);
    const { results } = await finish(core, events);
    assert.deepEqual([...results.keys()].sort(), ["fresh", "pinned"]);
    assert.deepEqual(
      results.get("fresh")!.versions.map(({ version }) => version),
      [2, 3],
    );
    assert.deepEqual(results.get("pinned")!.versions, [{ version: 1, tokenCount: 9 }]);
  });

  test("refuses versions that are not loaded, with an error that shows whether waiting can help", async () => {
    const { core } = await coreWith();
    core.submit(request({ id: "behind", versionRange: { lowest: 2, highest: 3 } }), false);
    core.submit(request({ id: "stale", versionRange: { lowest: 0, highest: 0 } }), false);
    core.submit(request({ id: "unknown", model: "other" }), false);
    const errors = new Map(
      (await finish(core)).events.map((e) => [e.id, e.kind === "failed" ? e.error : undefined]),
    );
    assert.ok(errors.get("behind") instanceof VersionBehindError);
    assert.ok(errors.get("stale") instanceof VersionStaleError);
    assert.ok(errors.get("unknown") instanceof VersionBehindError);
  });
});
