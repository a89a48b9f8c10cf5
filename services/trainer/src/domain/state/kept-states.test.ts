import assert from "node:assert/strict";
import { appendFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import type { RunConfig } from "@hone/config";
import { crashConfig } from "../../testing/crash-kinds.ts";
import { Death, newRoot, tenure } from "../../testing/memory-tenure.ts";
import { dieAnywhere, RECORDED, record, replayOf } from "../../testing/recorded-run.ts";
import { RunFolders } from "./run-folders.ts";

const DEMONSTRATIONS = { kind: "sft", policy: "p", tasks: 4, epochs: 2, batchSize: 2 };
const TRAINER = {
  steps: 5,
  stateEvery: 100,
  keepRollouts: true,
  keepStates: 2,
  checkpoint: { every: 2, keep: 3 },
  eval: { every: 0 },
  optimizer: { kind: "adamw", learningRate: 0.1, schedule: { kind: "linear", warmupSteps: 2 } },
};
const KL_REWARD = { coefficient: 0.1, adaptive: { target: 0.01, horizon: 100 } };

/** Runs that keep states, each with something that one step hands to the next. */
const KINDS: Readonly<Record<string, () => RunConfig>> = {
  "a run": () => crashConfig(DEMONSTRATIONS, TRAINER),
  "a run with a KL term against its first version": () =>
    crashConfig(DEMONSTRATIONS, TRAINER, { kl: { coefficient: 0.1 } }),
  "a run whose KL coefficient follows the distance, with a critic": () =>
    crashConfig(
      undefined,
      { ...TRAINER, critic: { warmupSteps: 3, epochs: 2 } },
      { advantage: { kind: "gae", lambda: 0.9 }, reward: { kl: KL_REWARD } },
    ),
  "a run with a curriculum that plays until its groups teach": () =>
    crashConfig(
      undefined,
      TRAINER,
      { dynamicSampling: { metric: "success" } },
      { kind: "success", chance: 0.5 },
    ),
  "an asynchronous run": () => crashConfig(undefined, { ...TRAINER, maxStaleness: 2 }),
};

describe("a replay from a kept state", () => {
  for (const [name, configOf] of Object.entries(KINDS)) {
    test(`of ${name} makes the same weights from there on, without playing or warming up`, async () => {
      await using root = await newRoot("replay");
      const recorded = await record(root.path, configOf());
      const folders = new RunFolders(root.path, RECORDED);
      assert.deepEqual(await folders.keptStates(), [0, 2, 4]);
      for (const from of [1, 3, 5]) {
        for (const made of ["state", "checkpoints"])
          await rm(path.join(root.path, "runs", "test-1", made), { recursive: true, force: true });
        const world = replayOf(configOf(), from);
        let count = 0;
        world.point = (point) => {
          if (point !== "after commit") return;
          if (count++ === 0) assert.equal(world.run.recovery?.version, from - 1, "a restart could not go on");
        };
        await tenure(world, root.path);
        assert.equal(world.run.stateDigest, recorded.run.stateDigest, `from step ${from}`);
        assert.equal(count, 5 - from + 2, `the commits from step ${from}`);
        const trained = [...recorded.ledger].filter(([, version]) => version >= from).sort();
        assert.deepEqual([...world.ledger].sort(), trained);
        assert.deepEqual(
          [...world.executions.keys()].filter((slot) => !slot.startsWith("eval.")),
          [],
        );
        const told = world.events.flatMap(({ event }) => (event.kind === "step" ? [event.step] : []));
        assert.deepEqual(
          told,
          Array.from({ length: 5 - from + 1 }, (_, i) => from + i),
        );
        assert.deepEqual([...new Set(world.records.map(({ version }) => version))], [from - 1, 5]);
        const exported = [2, 4, 5].filter((version) => version >= from);
        assert.deepEqual(await new RunFolders(root.path, "test-1").checkpoints(), exported);
        for (const version of [from, 5]) {
          const { loss: _, ...figures } = world.steps.get(version)!.metrics;
          const { loss: _of, ...then } = recorded.steps.get(version)!.metrics;
          for (const key of ["reward/kl/coefficient", "critic/value", "learning_rate"])
            assert.equal(figures[key], then[key], `${key} of step ${version}`);
        }
      }
    });
  }

  test("takes other settings from that step on, and the coefficient that it is given", async () => {
    const config = KINDS["a run whose KL coefficient follows the distance, with a critic"]!();
    await using root = await newRoot("replay");
    const recorded = await record(root.path, config);
    const reached = recorded.steps.get(3)?.metrics["reward/kl/coefficient"];
    assert.ok(reached !== undefined && reached !== 0.1);
    const coefficientWith = async (kl: object) => {
      const world = replayOf(config, 3);
      const { algorithm } = world.run.config;
      const changed = { ...algorithm, reward: { ...algorithm.reward, kl } } as RunConfig["algorithm"];
      world.run = { ...world.run, config: { ...world.run.config, algorithm: changed } };
      await tenure(world, root.path);
      assert.notEqual(world.run.stateDigest, recorded.run.stateDigest);
      return world.steps.get(3)?.metrics["reward/kl/coefficient"];
    };
    const { kl } = config.algorithm.reward;
    assert.equal(await coefficientWith({ ...kl, coefficient: 0.5 }), 0.5);
    assert.equal(await coefficientWith({ ...kl, adaptive: { target: 0.01, horizon: 50 } }), reached);
    assert.equal(await coefficientWith({ ...kl, adaptive: undefined }), 0.1);
  });

  test("makes the same weights after a death between any two effects", async () => {
    const config = crashConfig(
      DEMONSTRATIONS,
      { ...TRAINER, steps: 4, critic: { epochs: 1 } },
      { advantage: { kind: "gae" }, reward: { kl: KL_REWARD } },
    );
    await using root = await newRoot("replay");
    const recorded = await record(root.path, config);
    const worlds = await dieAnywhere(() => replayOf(config, 3), root.path);
    assert.ok(worlds.size > 25, `${worlds.size} effects`);
    for (const [where, { run, events }] of worlds) {
      assert.equal(run.stateDigest, recorded.run.stateDigest, where);
      const told = events.flatMap(({ event }) => (event.kind === "step" ? [event.step] : []));
      assert.deepEqual(told, [3, 4], where);
    }
  });

  test("does not go on with another reference than the one that was kept", async () => {
    const config = KINDS["a run with a KL term against its first version"]!();
    await using root = await newRoot("replay");
    await record(root.path, config);
    const world = replayOf(config, 3);
    world.point = (point) => {
      if (point === "after commit" && world.run.version === 3) throw new Death(point);
    };
    await assert.rejects(tenure(world, root.path), Death);
    const folders = new RunFolders(root.path, "test-1");
    await writeFile(path.join(folders.absolute(folders.reference), "model.safetensors"), "others");
    await assert.rejects(tenure(world, root.path), /reference\/model\.safetensors was changed/);
  });

  test("does not go on from a state that was changed, and names the file", async () => {
    const config = KINDS["a run with a KL term against its first version"]!();
    await using root = await newRoot("replay");
    await record(root.path, config);
    const folders = new RunFolders(root.path, RECORDED);
    for (const version of [0, 2]) {
      const folder = folders.absolute(folders.keptState(version));
      await writeFile(path.join(folder, "optimizer.safetensors"), "");
      const foreign = new RegExp(`kept-states/${version}/optimizer.safetensors was not there`);
      await assert.rejects(tenure(replayOf(config, 3), root.path), foreign);
      await rm(path.join(folder, "optimizer.safetensors"));
    }
    const folder = folders.absolute(folders.keptState(2));
    await appendFile(path.join(folder, "state"), "!");
    await assert.rejects(tenure(replayOf(config, 3), root.path), /kept-states\/2\/state was changed/);
    await rm(path.join(folder, "kept.json"));
    await assert.rejects(
      tenure(replayOf(config, 3), root.path),
      /kept-states\/2\/kept\.json, cannot be read: ENOENT.* Put its folder back from a copy/,
    );
  });
});

test("a state is kept once its version is committed, by the next owner where the first one died before", async () => {
  await using root = await newRoot("keep");
  const config = crashConfig(undefined, { ...TRAINER, keepStates: 2 });
  const folders = new RunFolders(root.path, "test-1");
  const world = replayOf(config);
  world.run = { ...world.run, config };
  world.point = (point) => {
    if (point === "after commit" && world.run.version === 2) throw new Death(point);
  };
  await assert.rejects(tenure(world, root.path), Death);
  assert.deepEqual(await folders.keptStates(), [0]);
  await folders
    .writeKeptState(2, world.run.epoch, async () => {
      throw new Death("while the state is linked");
    })
    .catch(() => undefined);
  world.point = (point) => {
    if (point === "load") throw new Death(point);
  };
  await assert.rejects(tenure(world, root.path), Death);
  assert.deepEqual((await readdir(folders.absolute(folders.allKeptStates))).sort(), ["0", "2"]);
});
