import assert from "node:assert/strict";
import { chmod, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { resolveRunConfig } from "@hone/config";
import { silentLogger } from "@hone/telemetry";
import { temporaryFolder } from "@hone/testing";
import type { TorchSettings } from "../config.ts";
import { testConfig } from "../testing/fake-run.ts";
import { TorchFinder } from "./find-torch.ts";

/** Calls `use` with a finder whose Python interpreter is replaced by a shell script. */
async function withTorch(
  script: string,
  use: (finder: TorchFinder) => Promise<void>,
  changes: Partial<TorchSettings> = {},
): Promise<void> {
  await using folder = await temporaryFolder("torch");
  const python = path.join(folder.path, "python");
  await writeFile(python, `#!/bin/sh\n${script}\n`);
  await chmod(python, 0o755);
  const environment = { PATH: process.env.PATH };
  const deadlines = { startDeadlineMs: 30_000, callDeadlineMs: 30_000 };
  const nodes = { nodes: 1, nodesPort: 1 };
  await use(new TorchFinder({ python, device: "auto", environment, ...deadlines, ...nodes, ...changes }));
}

const saying = (version: string, gpus: number) => `echo '${JSON.stringify({ version, gpus })}'`;

function runOf(engine: Record<string, unknown>) {
  const optimizer = { kind: "adamw", learningRate: 0.1 };
  return testConfig({ trainer: { steps: 3, optimizer, engine: { kind: "fsdp2", ...engine } } });
}

async function messagesOf(finder: TorchFinder, engine: Record<string, unknown>): Promise<string[]> {
  return (await finder.problems(runOf(engine))).map(({ message }) => message);
}

async function planOf(finder: TorchFinder, engine: Record<string, unknown>) {
  const config = runOf(engine).trainer.engine;
  assert.ok(config.kind === "fsdp2");
  return finder.plan(config, silentLogger());
}

describe("TorchFinder", () => {
  test("refuses the engine without PyTorch, and says what is missing", async () => {
    const [missing] = await messagesOf(new TorchFinder(undefined), {});
    assert.match(missing!, /trainer\.engine\.kind.*HONE_TRAINER_PYTHON must name an interpreter/);
    await withTorch("echo 'ModuleNotFoundError: no torch' >&2; exit 1", async (finder) => {
      assert.match(
        (await messagesOf(finder, {}))[0]!,
        /does not import it \(ModuleNotFoundError: no torch\)/,
      );
      await assert.rejects(planOf(finder, {}), /since PyTorch was not found/);
    });
    await withTorch(saying("2.4.0", 0), async (finder) => {
      assert.match((await messagesOf(finder, {}))[0]!, /of release 2\.13\.x, and is 2\.4\.0/);
    });
    await withTorch(
      saying("2.13.0", 0),
      async (finder) => assert.match((await messagesOf(finder, {}))[0]!, /sees no GPU/),
      { device: "cuda" },
    );
    assert.deepEqual(await new TorchFinder(undefined).problems(testConfig()), []);
  });

  test("without GPUs, plans one worker in float32 and no offloading", () =>
    withTorch(saying("2.13.0+cpu", 0), async (finder) => {
      const { plan, host } = await planOf(finder, {});
      assert.deepEqual(plan, {
        worldSize: 1,
        computeType: "float32",
        recomputesLayers: false,
        offloadsToHost: false,
      });
      assert.equal(host.device, "cpu");
      assert.deepEqual(await messagesOf(finder, { worldSize: 4, dtype: "bfloat16" }), []);
      assert.match((await messagesOf(finder, { cpuOffload: true }))[0]!, /trainer\.engine\.cpuOffload/);
      assert.match((await messagesOf(finder, { worldSize: 65 }))[0]!, /at most 64/);
    }));

  test("with GPUs, plans a worker on each in bfloat16 unless the run says otherwise, and never more workers than GPUs", () =>
    withTorch(saying("2.13.0+cu128", 8), async (finder) => {
      const { plan, host } = await planOf(finder, { activationCheckpointing: true, cpuOffload: true });
      assert.deepEqual(plan, {
        worldSize: 8,
        computeType: "bfloat16",
        recomputesLayers: true,
        offloadsToHost: true,
      });
      assert.equal(host.device, "cuda");
      assert.match((await messagesOf(finder, { worldSize: 9 }))[0]!, /at most 8, the GPUs of this trainer/);
    }));

  test("over several nodes, plans equally many workers on each, on all their GPUs unless the run says otherwise", () =>
    withTorch(
      saying("2.13.0+cu128", 8),
      async (finder) => {
        assert.equal((await planOf(finder, {})).plan.worldSize, 16);
        assert.deepEqual(await messagesOf(finder, { worldSize: 4 }), []);
        assert.match(
          (await messagesOf(finder, { worldSize: 9 }))[0]!,
          /a multiple of 2, the nodes of this trainer/,
        );
        assert.match(
          (await messagesOf(finder, { worldSize: 18 }))[0]!,
          /at most 16, the GPUs of the 2 nodes of this trainer/,
        );
      },
      { nodes: 2 },
    ));

  test("an engine accepts only its own keys", () => {
    const trainer = { steps: 1, optimizer: { kind: "adamw", learningRate: 0.1 } };
    const withEngine = (engine: Record<string, unknown>) =>
      resolveRunConfig({ ...testConfig(), trainer: { ...trainer, engine } });
    assert.throws(() => withEngine({ kind: "onnx", worldSize: 2 }), /worldSize/);
    assert.throws(() => withEngine({ kind: "fsdp2", dtype: "float16" }), /dtype/);
    assert.throws(() => withEngine({ kind: "fsdp3" }), /trainer\.engine/);
  });
});
