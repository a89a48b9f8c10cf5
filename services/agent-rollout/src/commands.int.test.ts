import assert from "node:assert/strict";
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { Outcome } from "@hone/proto-gen/rollout";
import { eventually, isAlive } from "@hone/testing";
import { type JobFields, LIMITS, RolloutWorld } from "./testing/rollout-world.ts";

const SAY = `
  const say = async (messages) => {
    const answer = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
      method: "POST",
      headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" },
      body: JSON.stringify({ model: "any", messages }),
    });
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()).choices[0].message;
  };`;

describe("the agent command", { timeout: 180_000 }, () => {
  let world: RolloutWorld;

  before(async () => {
    world = await RolloutWorld.open();
    await world.startService({
      HONE_FILES: tmpdir(),
      HONE_ALLOW_COMMANDS: "yes",
      PATH: `${path.dirname(process.execPath)}:${process.env.PATH ?? ""}`,
    });
  });
  after(() => world?.close());

  /** Submits a rollout that a command plays, and starts a replica that answers it. */
  const play = async (runId: string, command: readonly string[], fields: JobFields = {}) => {
    await world.gateway({ model: runId, replica: "one", behave: () => world.answer("01", "stream") });
    const agent = { agentName: "command", agentConfigJson: JSON.stringify({ command }) };
    const task = { id: `${runId}:0`, rowJson: '{"prompt":"0123"}' };
    await world.submit(world.job(runId, { ...agent, task, ...fields }));
  };
  const node = (script: string) => ["node", "--input-type=module", "-e", SAY + script];

  test("a command plays the rollout with the variables of its environment, and its result is recorded", async () => {
    await play(
      "s-command",
      node(`
        import { writeFileSync } from "node:fs";
        const task = JSON.parse(process.env.HONE_TASK);
        const messages = [...task.prompt];
        for (const next of ["23", "01"]) messages.push(await say(messages), { role: "user", content: next });
        console.log("done");
        const names = Object.keys(process.env).filter((name) => /NATS|SECRET|HONE_ENDPOINT/.test(name));
        writeFileSync(process.env.HONE_RESULT_FILE, JSON.stringify({ answer: "42", names, metrics: { tries: 2 } }));
      `),
    );
    const episode = await world.episodeOf("s-command");
    assert.equal(episode.reason, "");
    assert.equal(episode.outcome, Outcome.COMPLETED);
    assert.equal(episode.samples.length, 1);
    assert.equal(episode.metrics.tries, 2);
    assert.deepEqual(JSON.parse(episode.metadataJson), { answer: "42", names: [], stdout: "done\n" });
  });

  test("a command that fails ends as agent_failed, and one that is killed is started again", async () => {
    await play("s-exit", node('console.error("lost my way"); process.exit(3);'));
    const failed = await world.episodeOf("s-exit");
    assert.equal(failed.outcome, Outcome.AGENT_FAILED);
    assert.match(failed.reason, /exit code 3, and said last:\nlost my way/);
    assert.equal(failed.attempt, 1);

    const marker = path.join(tmpdir(), `hone-killed-${process.pid}`);
    await play(
      "s-killed",
      node(`
        import { existsSync, writeFileSync } from "node:fs";
        if (!existsSync(${JSON.stringify(marker)})) {
          writeFileSync(${JSON.stringify(marker)}, "");
          process.kill(process.pid, "SIGKILL");
        }
        await say([{ role: "user", content: "01" }]);
      `),
    );
    const killed = await world.episodeOf("s-killed");
    await rm(marker);
    assert.equal(killed.outcome, Outcome.COMPLETED);
    assert.equal(killed.attempt, 2);
    assert.match(killed.failedAttempts[0] ?? "", /SIGKILL/);
    assert.equal(killed.samples.length, 1);
  });

  test("a command and everything that it started end with the attempt", async () => {
    const file = path.join(tmpdir(), `hone-late-${process.pid}`);
    const command = ["sh", "-c", `sleep 600 & echo $! > ${file}.new; mv ${file}.new ${file}; wait`];
    await play("s-late", command, { limits: { ...LIMITS, deadlineMs: 1_500 } });
    const episode = await world.episodeOf("s-late");
    assert.equal(episode.outcome, Outcome.TIMED_OUT);
    const pid = Number(await readFile(file, "utf8"));
    await rm(file);
    await eventually("the end of what it started", () => !isAlive(pid));
  });
});
