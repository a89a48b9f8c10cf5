import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { inlineFiles, parseRunFile } from "@hone/config";
import type { ScoredEpisode } from "@hone/proto-gen/rollout";
import { loadTokenizer } from "@hone/tokenizer";
import { type FinishedRun, runToEnd } from "../support/follow.ts";
import { scoredEpisodes } from "../support/inspect/scored-episodes.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/* A short version of the example of three worlds: its files fit together, and each world is played, judged and trained. */

const EXAMPLE = path.join(REPOSITORY, "examples", "07-worlds");
const PARTS = ["lake", "shop", "sokoban"];
const STEPS = 2;
const GROUP_SIZE = 2;

describe("the example of three worlds", () => {
  let stack: TestStack;
  let finished: FinishedRun;
  let scored: ScoredEpisode[];

  before(async () => {
    const run = parseRunFile(await readFile(path.join(EXAMPLE, "run.yaml"), "utf8"));
    const { dataset, rollout, trainer, warmStart } = run;
    assert.ok(dataset.train.source === "mix" && warmStart !== undefined);
    const parts = dataset.train.parts.map((part) => ({ ...part, groups: 2 }));
    const short = await inlineFiles(
      {
        ...run,
        warmStart: { ...warmStart, tasks: 90 },
        dataset: { ...dataset, train: { ...dataset.train, parts } },
        rollout: { ...rollout, tasksPerStep: 6, groupSize: GROUP_SIZE },
        trainer: {
          ...trainer,
          steps: STEPS,
          minibatches: 2,
          optimizer: { ...trainer.optimizer, schedule: { ...trainer.optimizer.schedule, warmupSteps: 1 } },
          eval: { ...trainer.eval, every: 0, tasks: 6 },
        },
      },
      EXAMPLE,
    );
    stack = await startStack();
    // Read while the run is active, because episodes are purged after its end.
    const episodes = scoredEpisodes(stack.bus, {
      run: run.name,
      count: STEPS * 6 * GROUP_SIZE,
      deadlineMs: 120_000,
    });
    finished = await runToEnd(stack, short, { deadlineMs: 120_000 });
    scored = await episodes;
  });
  after(() => stack?.[Symbol.asyncDispose]());

  test("has figures for each world, in steps and evaluations", () => {
    assert.equal(finished.steps.length, STEPS);
    for (const record of [...finished.steps, ...finished.evaluations]) {
      for (const part of PARTS) {
        assert.ok(record.metrics[`part/${part}/success`] !== undefined, part);
        assert.ok(Number(record.metrics[`part/${part}/groups`]) >= 2, part);
      }
    }
  });

  test("knows every word that a world shows, so that no token stands for an unknown one", async () => {
    const tokenizer = await loadTokenizer(EXAMPLE);
    const unknown = tokenizer.tokenId("<|unk|>");
    assert.ok(unknown !== undefined);
    for (const { episode } of scored) {
      for (const { tokenIds } of episode?.samples ?? []) {
        assert.ok(!tokenIds.includes(unknown), `${episode?.task?.id}: ${tokenizer.decode(tokenIds)}`);
      }
    }
    const played = new Set(scored.map(({ episode }) => episode?.task?.part));
    assert.deepEqual([...played].sort(), PARTS);
  });

  test("has the tokenizer that its program writes", async () => {
    const folder = await mkdtemp(path.join(REPOSITORY, ".hone", "worlds-"));
    try {
      await cp(path.join(EXAMPLE, "make-tokenizer.ts"), path.join(folder, "make-tokenizer.ts"));
      await promisify(execFile)(process.execPath, [path.join(folder, "make-tokenizer.ts")]);
      for (const name of ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"]) {
        const [made, kept] = [path.join(folder, name), path.join(EXAMPLE, name)];
        assert.equal(await readFile(made, "utf8"), await readFile(kept, "utf8"), name);
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
