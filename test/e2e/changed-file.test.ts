import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import type { RunConfig } from "@hone/config";
import { BucketName, openBucket } from "@hone/messaging";
import { RunStateSchema } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { publishRequest } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { CommandLine } from "../support/processes/command-line.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/* A run file that was changed while its run is unfinished: no command continues the run without saying so. */

const RUN = { name: "changing", steps: 1, tasksPerStep: 2, minibatches: 1, warmStartTasks: 10, evalTasks: 2 };

describe("a run file and its unfinished run", { timeout: 180_000 }, () => {
  let stack: TestStack;
  let sent: RunConfig;
  let runId: string;
  let natsUrl: string;
  before(async () => {
    // Without this service the run stays unfinished, waiting to be checked.
    stack = await startStack({ without: ["agent-rollout"] });
    sent = await lakeRun(RUN);
    runId = `changing-${await publishRequest(stack.bus, JSON.stringify(sent))}`;
    natsUrl = JSON.parse(await readFile(path.join(stack.stateFolder, "stack.json"), "utf8")).natsUrl;
    const states = await openBucket(stack.bus, BucketName.runState, RunStateSchema);
    await eventually("the run's state", async () => (await states.get(runId)) !== undefined, {
      deadlineMs: 60_000,
    });
  });
  after(() => stack?.[Symbol.asyncDispose]());

  async function start(command: "run" | "submit", config: RunConfig): Promise<CommandLine> {
    const file = path.join(stack.stateFolder, `${command}-${Date.now()}.json`);
    await writeFile(file, JSON.stringify(config));
    const env = command === "submit" ? { HONE_NATS_URL: natsUrl } : {};
    return new CommandLine([command, file], { stateFolder: stack.stateFolder, userFolder: REPOSITORY, env });
  }

  for (const command of ["run", "submit"] as const) {
    test(`hone ${command} reports the changes and does not continue the run`, async () => {
      const changed = { ...sent, seed: sent.seed + 1, rollout: { ...sent.rollout, maxTurns: 3 } };
      const line = await start(command, changed);
      assert.equal(await line.ended, 1);
      assert.match(
        line.errors,
        new RegExp(`the unfinished run ${runId} of this name was made from a different file`),
      );
      assert.match(line.errors, new RegExp(`seed was ${sent.seed} and is ${sent.seed + 1}`));
      assert.match(line.errors, new RegExp(`rollout\\.maxTurns was ${sent.rollout.maxTurns} and is 3`));
      const [counted] = await stack.sql`select count(*)::int as runs from trainer.runs`;
      assert.equal(counted?.runs, 1);
    });

    test(`hone ${command} continues the unfinished run of the same file, and reports values that it ignores`, async () => {
      const { trainer } = sent;
      const line = await start(command, {
        ...sent,
        trainer: { ...trainer, checkpoint: { every: 9, keep: 5 } },
      });
      await eventually("the message that the run continues", () => line.output.includes("continues"), {
        deadlineMs: 30_000,
      });
      line.kill("SIGINT");
      await line.ended;
      assert.match(line.output, new RegExp(`run ${runId} of this file is unfinished, and continues`));
      assert.match(line.output, /with trainer\.checkpoint\.keep 2, as it was submitted; the file now says 5/);
    });
  }
});
