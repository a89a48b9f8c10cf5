import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { runFile } from "../../testing/trainer-process.ts";
import { readRequest } from "./read-request.ts";

async function problemOf(text: string, folder = ".") {
  const read = await readRequest(() => text, 3, folder);
  assert.equal(read.kind, "refused");
  return read.kind === "refused" ? read.problems[0]! : assert.fail();
}

describe("readRequest()", () => {
  test("makes the run's id from the name in its file and the sequence of its request", async () => {
    const text = await runFile();
    const read = await readRequest(() => text, 3, ".");
    assert.equal(read.kind === "run" && read.run.runId, "small-3");
  });

  test("refuses a setting that the training engine would ignore, with key, value and what is allowed", async () => {
    const rollout = { tasksPerStep: 4, groupSize: 4 };
    const cut = await problemOf(await runFile({ rollout: { ...rollout, sampling: { topP: 0.9 } } }));
    assert.deepEqual([cut.key, cut.valueJson], ["rollout.sampling.topP", "0.9"]);
    assert.match(cut.allowed, /^1 as training compares with/);
    for (const sampling of [{ minP: 0.1 }, { repetitionPenalty: 1.1 }]) {
      const { key } = await problemOf(await runFile({ rollout: { ...rollout, sampling } }));
      assert.equal(key, `rollout.sampling.${Object.keys(sampling)[0]}`);
    }
    const greedy = await problemOf(await runFile({ rollout: { ...rollout, sampling: { temperature: 0 } } }));
    assert.equal(greedy.key, "rollout.sampling.temperature");
  });

  test("refuses what an asynchronous run does not offer", async () => {
    const trainer = { steps: 1, optimizer: { kind: "adamw", learningRate: 0.1 }, maxStaleness: 2 };
    const problem = await problemOf(await runFile({ trainer, algorithm: { dynamicSampling: {} } }));
    assert.equal(problem.key, "algorithm.dynamicSampling");
    assert.match(problem.allowed, /left out where trainer.maxStaleness is 2/);
  });

  test("reads files that the run file names below the files folder, and refuses missing ones", async () => {
    await using folder = await temporaryFolder("files");
    await writeFile(path.join(folder.path, "agent.yaml"), "size: 4\n");
    const text = await runFile({ agent: { name: "fake", configPath: "agent.yaml" } });
    const found = await readRequest(() => text, 3, folder.path);
    assert.ok(found.kind === "run");
    assert.deepEqual(JSON.parse(found.run.configJson).agent, { name: "fake", config: { size: 4 } });
    const missing = await problemOf(
      await runFile({ agent: { name: "fake", configPath: "other.yaml" } }),
      folder.path,
    );
    assert.deepEqual([missing.key, missing.valueJson], ["agent.configPath", '"other.yaml"']);
  });
});
