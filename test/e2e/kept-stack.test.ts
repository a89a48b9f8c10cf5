import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { eventually, temporaryFolder } from "@hone/testing";
import { lakeRun } from "../support/lake-run.ts";
import { CommandLine } from "../support/processes/command-line.ts";
import { REPOSITORY } from "../support/stack.ts";

const WAIT = { deadlineMs: 60_000 };
const RUN = { name: "kept", steps: 500, tasksPerStep: 2, minibatches: 1, warmStartTasks: 10, evalTasks: 2 };

test("hone run --keep keeps the page of a run that is cancelled, and its exit code tells that it was", async () => {
  await using folder = await temporaryFolder("kept");
  const options = { stateFolder: path.join(folder.path, "state"), userFolder: REPOSITORY };
  const file = path.join(folder.path, "run.json");
  await writeFile(file, JSON.stringify(await lakeRun(RUN)));
  const running = new CommandLine(["run", file, "--keep"], options);
  try {
    await eventually("a step", () => /step +\d+\/500/.test(running.output), WAIT);
    assert.equal(await new CommandLine(["cancel", "kept-1"], options).ended, 0);
    await eventually(
      "the message that the page stays",
      () => /the page stays up at/.test(running.output),
      WAIT,
    );
    assert.match(running.output, /the run was cancelled/);
    const status = new CommandLine(["status"], options);
    assert.equal(await status.ended, 0);
    assert.match(status.output, /kept-1 +cancelled/);
  } finally {
    running.kill("SIGINT");
  }
  assert.equal(await running.ended, 1);
  assert.match(running.errors, /the run was cancelled/);
});
