import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { describe, test } from "node:test";
import type { RunConfig } from "@hone/config";
import { crashConfig } from "../../testing/crash-kinds.ts";
import { newRoot } from "../../testing/memory-tenure.ts";
import { RECORDED, record, replayOf } from "../../testing/recorded-run.ts";
import { RunFolders } from "../state/run-folders.ts";
import { replayProblems } from "./check-replay.ts";

const CONFIG = crashConfig(undefined, {
  steps: 4,
  keepRollouts: true,
  keepStates: 2,
  checkpoint: { every: 0, keep: 1 },
  eval: { every: 0 },
});

describe("the check of a replay", () => {
  async function problemsOf(root: string, config: RunConfig): Promise<Record<string, string>> {
    const problems = await replayProblems(config, new RunFolders(root, "test-1"));
    return Object.fromEntries(problems.map(({ key, message }) => [key, message]));
  }

  test("names the first step whose rollouts are not kept", async () => {
    await using root = await newRoot("replay");
    const replay = { run: RECORDED };
    const of = (steps: number, from?: number) => ({
      ...CONFIG,
      replay: { ...replay, from },
      trainer: { ...CONFIG.trainer, steps },
    });
    assert.match(
      (await problemsOf(root.path, of(4)))["replay.run"]!,
      /recorded-1, whose rollouts are not kept/,
    );
    await record(root.path, CONFIG);
    assert.deepEqual(await problemsOf(root.path, of(4)), {});
    const missing = /the rollouts of step 5 are not kept, and trainer.steps is 5/;
    assert.match((await problemsOf(root.path, of(5)))["replay.run"]!, missing);
    assert.match((await problemsOf(root.path, of(5, 3)))["replay.run"]!, missing);
    const folders = new RunFolders(root.path, RECORDED);
    await rm(folders.absolute((await folders.keptSteps()).get(1)!), { recursive: true });
    assert.deepEqual(await problemsOf(root.path, of(4, 3)), {});
    assert.match((await problemsOf(root.path, of(4, 1)))["replay.run"]!, /the rollouts of step 1 are not/);
  });

  test("refuses a first step before which no state is kept, and names one that follows such a state", async () => {
    await using root = await newRoot("replay");
    await record(root.path, CONFIG);
    const from = async (step: number) =>
      (await problemsOf(root.path, replayOf(CONFIG, step).run.config))["replay.from"];
    assert.equal(await from(1), undefined);
    assert.equal(await from(3), undefined);
    assert.match((await from(2))!, /is 2; it must be a step after a version whose state .* such as 1$/);
    assert.match((await from(4))!, /such as 3$/);
    await rm(new RunFolders(root.path, RECORDED).absolute(`runs/${RECORDED}/kept-states`), {
      recursive: true,
    });
    assert.match((await from(3))!, /left out, as recorded-1 kept no whole states \(trainer.keepStates\)/);
  });

  test("refuses a reference policy that is not kept", async () => {
    await using root = await newRoot("replay");
    await record(root.path, CONFIG);
    const { config } = replayOf(CONFIG, 3).run;
    const near = {
      ...config,
      algorithm: { ...config.algorithm, kl: { ...config.algorithm.kl, coefficient: 0.1 } },
    };
    assert.deepEqual(await problemsOf(root.path, near), {});
    const folders = new RunFolders(root.path, RECORDED);
    await rm(folders.absolute(folders.keptState(0)), { recursive: true });
    assert.deepEqual(await problemsOf(root.path, config), {});
    assert.match((await problemsOf(root.path, near))["replay.from"]!, /does not keep the state of version 0/);
  });

  test("refuses another model, another engine, and a critic that the run did not have", async () => {
    await using root = await newRoot("replay");
    await record(root.path, CONFIG);
    const { config } = replayOf(CONFIG, 3).run;
    const { model, trainer } = config;
    assert.ok("init" in model);
    const problems = await problemsOf(root.path, {
      ...config,
      model: { init: { ...model.init, numLayers: 2 } },
      trainer: {
        ...trainer,
        engine: { kind: "fsdp2", microbatchTokens: 64, activationCheckpointing: false, cpuOffload: false },
        critic: { loss: { clip: 0.2, aggregate: "token_mean" } as never, warmupSteps: 0 },
      },
    });
    assert.match(problems.model!, /it must be that of recorded-1, .*"numLayers":1/);
    assert.match(problems["trainer.engine.kind"]!, /it must be "onnx", as that engine wrote the optimizer/);
    assert.match(problems["trainer.critic"]!, /recorded-1 has no critic to go on with/);
    assert.equal(Object.keys(problems).length, 3);
  });

  test("refuses a critic that begins with another model", async () => {
    await using root = await newRoot("replay");
    const withCritic = crashConfig(
      undefined,
      { ...CONFIG.trainer, critic: {}, steps: 2, keepStates: 1 },
      { advantage: { kind: "gae" } },
    );
    await record(root.path, withCritic);
    const { config } = replayOf(withCritic, 2).run;
    assert.deepEqual(await problemsOf(root.path, config), {});
    const critic = { ...config.trainer.critic!, model: { path: "some/model", revision: "main" } };
    const problems = await problemsOf(root.path, { ...config, trainer: { ...config.trainer, critic } });
    assert.match(problems["trainer.critic.model"]!, /it must be left out, as in recorded-1/);
  });
});
