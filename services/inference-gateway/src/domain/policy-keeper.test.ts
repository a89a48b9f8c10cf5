import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PolicyLoadError, VersionBehindError } from "./errors.ts";
import { generateWhenLoaded } from "./generate-when-loaded.ts";
import type { EngineGeneration, GenerateRequest, InferenceEngine, PolicySource } from "./inference-engine.ts";
import { type PolicyChange, PolicyKeeper } from "./policy-keeper.ts";

/** An engine whose loads end when the test says so. */
class HandDrivenEngine implements InferenceEngine {
  readonly calls: string[] = [];
  readonly loads: { source: PolicySource; resolve: () => void; reject: (error: Error) => void }[] = [];
  version = 0;

  loadPolicy(source: PolicySource): Promise<void> {
    this.calls.push(`load ${source.version}`);
    return new Promise((resolve, reject) => {
      const done = () => {
        this.version = source.version;
        resolve();
      };
      this.loads.push({ source, resolve: done, reject });
    });
  }

  async unload(model: string): Promise<void> {
    this.calls.push(`unload ${model}`);
    this.version = 0;
  }

  async generate(request: GenerateRequest): Promise<EngineGeneration> {
    if (this.version < request.versionRange.lowest) {
      throw new VersionBehindError(request.model, request.versionRange, this.version);
    }
    this.calls.push(`generate on ${this.version}`);
    const metrics = { prefillTokens: 1, cachedTokens: 0, queueMs: 0, prefillMs: 0, decodeMs: 0 };
    return { tokenIds: [], logprobs: [], finishReason: "length", versions: [], metrics };
  }

  abort(): void {
    this.calls.push("abort");
  }

  capacity() {
    return { maxSequences: 1, maxWaiting: 1, running: 0, waiting: 0, models: [] };
  }

  async close(): Promise<void> {
    this.calls.push("close");
  }
}

function setUp() {
  const engine = new HandDrivenEngine();
  const changes: PolicyChange[] = [];
  let told = Promise.withResolvers<void>();
  const keeper = new PolicyKeeper({
    engine,
    onChange: (change) => {
      changes.push(change);
      told.resolve();
      told = Promise.withResolvers<void>();
    },
  });
  async function until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) await told.promise;
  }
  const want = (version: number) =>
    keeper.want({ model: "m", version, folder: `/v${version}`, digest: `d${version}` });
  return { engine, keeper, changes, until, want };
}

const request: GenerateRequest = {
  id: "r",
  model: "m",
  promptIds: [1],
  sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 1, stopTokenIds: [] },
  seed: 1,
  sessionId: "",
  groupId: "",
  versionRange: { lowest: 3, highest: 3 },
  deadlineMs: 60_000,
};

describe("PolicyKeeper", () => {
  test("loads one version at a time, and skips versions that are superseded in the meantime", async () => {
    const { engine, keeper, changes, until, want } = setUp();
    for (const version of [1, 2, 3]) want(version);
    want(3);
    assert.deepEqual(engine.calls, ["load 1"]);
    engine.loads[0]!.resolve();
    await until(() => engine.loads.length === 2);
    assert.equal(keeper.loading("m")?.version, 3);
    engine.loads[1]!.resolve();
    await until(() => changes.at(-1)?.kind === "loaded" && engine.version === 3);
    assert.deepEqual(engine.calls, ["load 1", "load 3"]);
    assert.equal(keeper.loading("m"), undefined);
    await keeper.close();
  });

  test("tries a failed load again until it succeeds", async () => {
    const { engine, keeper, changes, until, want } = setUp();
    want(1);
    engine.loads[0]!.reject(new PolicyLoadError("not there yet"));
    await until(() => engine.loads.length === 2);
    engine.loads[1]!.resolve();
    await until(() => changes.at(-1)?.kind === "loaded");
    assert.equal(engine.version, 1);
    assert.deepEqual(
      changes.map((change) => change.kind),
      ["loading", "failed", "loading", "loaded"],
    );
    await keeper.close();
  });

  test("unloads a dropped model, and loads it again when it is wanted again", async () => {
    const { engine, keeper, until, changes, want } = setUp();
    want(1);
    engine.loads[0]!.resolve();
    await until(() => changes.at(-1)?.kind === "loaded");
    keeper.drop("m");
    keeper.drop("never seen");
    await until(() => changes.at(-1)?.kind === "unloaded");
    want(1);
    await until(() => engine.loads.length === 2);
    engine.loads[1]!.resolve();
    await until(() => changes.at(-1)?.kind === "loaded");
    assert.deepEqual(engine.calls, ["load 1", "unload m", "load 1"]);
    await keeper.close();
  });
});

describe("generateWhenLoaded()", () => {
  test("waits for a version that the request may use", async () => {
    const { engine, keeper, until, want } = setUp();
    const generating = generateWhenLoaded(engine, keeper, request, { versionWaitMs: 60_000 });
    want(2);
    engine.loads[0]!.resolve();
    await until(() => engine.version === 2);
    want(3);
    await until(() => engine.loads.length === 2);
    engine.loads[1]!.resolve();
    await generating;
    assert.equal(engine.calls.at(-1), "generate on 3");
    await keeper.close();
  });

  test("refuses as behind when the wait is over or the caller goes away", async () => {
    const { engine, keeper } = setUp();
    const attempt = (versionWaitMs: number, signal?: AbortSignal) =>
      generateWhenLoaded(engine, keeper, request, { versionWaitMs, signal });
    await assert.rejects(attempt(0), VersionBehindError);
    await assert.rejects(attempt(5), VersionBehindError);
    await assert.rejects(attempt(60_000, AbortSignal.abort()), VersionBehindError);
    await keeper.close();
  });
});
