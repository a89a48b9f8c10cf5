import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { eventually, temporaryFolder } from "@hone/testing";
import { lakeRun } from "../support/lake-run.ts";
import { CommandLine } from "../support/processes/command-line.ts";

/* A run waits for a hub that does not answer, as it may come back, and the command line shows why it waits. */

const RUN = { name: "far", steps: 1, tasksPerStep: 2, minibatches: 1, warmStartTasks: 0, evalTasks: 2 };

test("a run whose model cannot be fetched says so, and Ctrl-C ends the command", {
  timeout: 120_000,
}, async () => {
  await using folder = await temporaryFolder("hub-away");
  const file = path.join(folder.path, "run.json");
  const { warmStart: _, ...run } = await lakeRun(RUN);
  await writeFile(file, JSON.stringify({ ...run, model: { path: "some/model" } }));
  const command = new CommandLine(["run", file], {
    stateFolder: path.join(folder.path, "state"),
    userFolder: folder.path,
    env: { HF_ENDPOINT: "http://127.0.0.1:9", HF_HUB_OFFLINE: "0" },
  });
  try {
    const reason = /waiting for its model \(Cannot fetch some\/model: the hub is not available/;
    await eventually("the reason", () => reason.test(command.output), { deadlineMs: 60_000 });
    command.kill("SIGINT");
    assert.equal(await command.ended, 130);
    assert.match(command.output, /unfinished; running .*run\.json again continues it/);
  } finally {
    command.kill("SIGTERM");
    await command.ended;
  }
});
