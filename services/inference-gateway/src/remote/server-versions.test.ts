/** The weights of a server behind the gateway: changes of version, adapters and labels. */

import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, describe, test } from "node:test";
import { saveAdapter } from "@hone/checkpoint";
import { initialiseWeights, listAdapterParameters, resolveLora } from "@hone/nn";
import { eventually, temporaryFolder } from "@hone/testing";
import { EngineFailedError, PolicyLoadError } from "../domain/errors.ts";
import type { PolicySource } from "../domain/inference-engine.ts";
import { labelOf } from "./read-server-policy.ts";
import { ServerEngine, type ServerEngineOptions } from "./server-engine.ts";
import { SglangServer } from "./sglang/sglang-server.ts";
import { ask, engineOver } from "./testing/engine-subject.ts";
import { FakeSglangServer } from "./testing/fake-sglang-server.ts";
import { FakeVllmServer } from "./testing/fake-vllm-server.ts";
import { TEST_SPEC, writePolicy } from "./testing/policies.ts";
import { VllmServer } from "./vllm/vllm-server.ts";

const folder = await temporaryFolder("server-versions");
after(() => folder[Symbol.asyncDispose]());
const start = await writePolicy(folder.path, "start", 0);
const first = await writePolicy(folder.path, "m", 1);
const second = await writePolicy(folder.path, "m", 2);
const shared = {
  folder: start.folder,
  vocabularySize: TEST_SPEC.vocabSize,
  maxContextTokens: TEST_SPEC.maxPositions,
};
const overVllm = (change: { readonly takesAdapters?: boolean } = {}) =>
  engineOver(
    new FakeVllmServer({ ...shared, scoring: "processed", ...change }),
    (url) => new VllmServer({ url }),
  );
const overSglang = (
  change: { readonly takesAdapters?: boolean } = {},
  options: Partial<ServerEngineOptions> = {},
) =>
  engineOver(
    new FakeSglangServer({ ...shared, scoring: "tempered", ...change }),
    (url) => new SglangServer({ url }),
    options,
  );

describe("versions of an engine with a server", () => {
  for (const [name, over] of [
    ["vLLM", overVllm],
    ["SGLang", overSglang],
  ] as const) {
    test(`${name}: a generation that moves continues from its own tokens, each labelled with its version`, async () => {
      await using subject = await over();
      const { engine, test: server } = subject;
      await engine.loadPolicy(first);
      let loading: Promise<void> | undefined;
      server.beforeToken = async (request) => {
        if (request.ids.length !== 7 || request.promptIds.length !== 4) return;
        loading ??= engine.loadPolicy(second);
        // The generation waits at this token until it is cut off.
        while (request.end === undefined) await new Promise(setImmediate);
      };
      const result = await engine.generate(ask());
      await loading;
      assert.deepEqual(result.versions, [
        { version: 1, tokenCount: 7 },
        { version: 2, tokenCount: 13 },
      ]);
      const prompts = server.calls
        .filter(({ body }) => "prompt" in body || "input_ids" in body)
        .map(({ body }) => (body.prompt ?? body.input_ids) as number[]);
      assert.deepEqual(prompts.at(-1), [1, 2, 3, 4, ...result.tokenIds.slice(0, 7)]);
      server.beforeToken = () => undefined;
      const again = await engine.generate(ask());
      assert.deepEqual(again.versions, [{ version: 2, tokenCount: 20 }]);
    });

    test(`${name}: a generation that may not move ends on the old version, and the load waits`, async () => {
      await using subject = await over();
      const { engine, test: server } = subject;
      await engine.loadPolicy(first);
      let loading: Promise<void> | undefined;
      const order: string[] = [];
      server.beforeToken = ({ ids }) => {
        if (ids.length === 5) loading ??= engine.loadPolicy(second).then(() => void order.push("loaded"));
      };
      const pinned = ask({ versionRange: { lowest: 1, highest: 1 } });
      const result = await engine.generate(pinned).finally(() => order.push("generated"));
      await loading;
      assert.deepEqual(result.versions, [{ version: 1, tokenCount: 20 }]);
      assert.deepEqual(order, ["generated", "loaded"]);
      await assert.rejects(engine.generate({ ...pinned, id: "late" }), { code: "VERSION_STALE" });
    });

    test(`${name}: the load waits for a generation that shall finish on its weights`, async () => {
      await using subject = await over();
      const { engine, test: server } = subject;
      await engine.loadPolicy(first);
      let loading: Promise<void> | undefined;
      server.beforeToken = async (request) => {
        if (request.ids.length === 5) loading ??= engine.loadPolicy(second);
      };
      const finished = await engine.generate(ask({ onNewVersion: "finish" }));
      assert.deepEqual(finished.versions, [{ version: 1, tokenCount: 20 }]);
      await loading;
      assert.deepEqual((await engine.generate(ask())).versions, [{ version: 2, tokenCount: 20 }]);
    });

    test(`${name}: a generation that a new version makes too old ends at once, and the load does not wait`, async () => {
      await using subject = await over();
      const { engine, test: server } = subject;
      await engine.loadPolicy(first);
      let loading: Promise<void> | undefined;
      server.beforeToken = async (request) => {
        if (request.ids.length !== 5) return;
        loading ??= engine.loadPolicy(second);
        while (request.end === undefined) await new Promise(setImmediate);
      };
      await assert.rejects(engine.generate(ask({ maxStaleness: 0 })), { code: "VERSION_STALE" });
      await loading;
      server.beforeToken = () => undefined;
      const next = await engine.generate(ask({ maxStaleness: 0 }));
      assert.deepEqual(next.versions, [{ version: 2, tokenCount: 20 }]);
    });

    test(`${name}: adapters are loaded in addition to the weights, and removed when newer ones are loaded`, async () => {
      await using subject = await over({ takesAdapters: true });
      const { engine, test: server } = subject;
      const [one, two] = [await writeAdapter(1), await writeAdapter(2)];
      await engine.loadPolicy(one);
      const before = await engine.generate(ask());
      await engine.loadPolicy(two);
      const after = await engine.generate(ask());
      assert.deepEqual([before.versions[0]!.version, after.versions[0]!.version], [1, 2]);
      assert.notDeepEqual(before.logprobs, after.logprobs);
      const named = server.calls.map(({ body }) => body.model ?? body.lora_path);
      assert.ok(named.includes(labelOf(one)) && named.includes(labelOf(two)));
      const dropped = server.calls.filter(({ path }) => path.endsWith("/unload_lora_adapter"));
      assert.equal(dropped.at(-1)?.body.lora_name, labelOf(one));
      assert.ok(!server.calls.some(({ path }) => /^POST .*(collective_rpc|from_disk)/.test(path)));
    });
  }

  test("adapters are refused if the server takes none, or holds other weights than their base", async () => {
    const adapter = await writeAdapter(3);
    {
      await using subject = await overVllm();
      await assert.rejects(
        subject.engine.loadPolicy(adapter),
        (error) => error instanceof PolicyLoadError && /must take adapters/.test(error.message),
      );
    }
    await using subject = await overVllm({ takesAdapters: true });
    await subject.engine.loadPolicy(first);
    await assert.rejects(subject.engine.loadPolicy(adapter), /until it restarts/);
    // A gateway that is started again finds these weights at the server.
    const later = new ServerEngine({ server: new VllmServer({ url: subject.test.url }), lookEveryMs: 20 });
    await assert.rejects(later.loadPolicy(adapter), /until it restarts/);
    await later.close();
    const stranger = { ...adapter, base: first.folder, digest: (await writeAdapter(4, first)).digest };
    await assert.rejects(subject.engine.loadPolicy(stranger), PolicyLoadError);
  });

  test("the server reads the model of a state, but not the optimizer in the same folder", async () => {
    const views = path.join(folder.path, "views");
    await using subject = await engineOver(
      new FakeVllmServer({ ...shared, scoring: "processed" }),
      (url) => new VllmServer({ url }),
      { viewFolder: views },
    );
    const { engine } = subject;
    const third = await writePolicy(folder.path, "m", 3);
    const fourth = await writePolicy(folder.path, "m", 4);
    for (const state of [third, fourth])
      await writeFile(path.join(state.folder, "optimizer.safetensors"), "moments");
    await engine.loadPolicy(first);
    for (const state of [third, fourth]) {
      await engine.loadPolicy(state);
      assert.deepEqual((await engine.generate(ask())).versions, [{ version: state.version, tokenCount: 20 }]);
      assert.deepEqual(await readdir(views), [labelOf(state)]);
    }
    assert.deepEqual((await readdir(path.join(views, labelOf(fourth)))).sort(), [
      "config.json",
      "model.safetensors",
    ]);
    await engine.loadPolicy(second);
    assert.deepEqual(await readdir(views), []);
  });

  test("SGLang's own labels are used, for spans within one call, and for weights that the gateway did not load", async () => {
    // A check would notice the change before the answer shows it.
    await using subject = await overSglang({}, { lookEveryMs: 60_000 });
    const { engine, test: server } = subject;
    await engine.loadPolicy(first);
    let label = labelOf(second);
    server.beforeToken = ({ ids }) => {
      if (ids.length === 8) server.relabel(label);
    };
    const mixed = await engine.generate(ask());
    assert.deepEqual(mixed.versions, [
      { version: 1, tokenCount: 8 },
      { version: 2, tokenCount: 12 },
    ]);
    server.relabel(labelOf(first));
    label = "somebody else's";
    await assert.rejects(engine.generate(ask()), EngineFailedError);
    const loads = () => server.calls.filter(({ path }) => path === "POST /update_weights_from_disk").length;
    await eventually("the right weights", () => loads() === 2 && engine.capacity().models.length === 1);
    server.beforeToken = () => undefined;
    const after = await engine.generate(ask());
    assert.deepEqual(after.versions, [{ version: 1, tokenCount: 20 }]);
  });
});

async function writeAdapter(version: number, base: PolicySource = start): Promise<PolicySource> {
  const target = path.join(folder.path, `adapter-${version}`);
  const lora = resolveLora({ rank: 2, alpha: 4, targets: ["q_proj"] });
  const parameters = listAdapterParameters(TEST_SPEC, lora);
  const values = Object.values(initialiseWeights(TEST_SPEC, version))[0]!;
  const weights = Object.fromEntries(
    parameters.map(({ name, shape }) => [
      name,
      values.slice(
        0,
        shape.reduce((size, each) => size * each, 1),
      ),
    ]),
  );
  const { digest } = await saveAdapter(target, {
    spec: TEST_SPEC,
    lora,
    weights,
    base: { place: base.folder },
    baseDigest: base.digest,
    companions: {},
  });
  return { model: "m", version, folder: target, digest };
}
