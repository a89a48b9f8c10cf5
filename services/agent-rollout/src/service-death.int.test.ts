import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { Outcome } from "@hone/proto-gen/rollout";
import { eventually, isAlive } from "@hone/testing";
import type { FakeGateway } from "./testing/fake-gateway.ts";
import { RolloutWorld } from "./testing/rollout-world.ts";

/* agent-rollout gets SIGKILL while it runs a command: the command and its session end, and the job is delivered again. */

const RUN = "death-1";

describe("the death of agent-rollout", { timeout: 240_000 }, () => {
  let world: RolloutWorld;
  let folder: string;
  let gateway: FakeGateway;
  let reporting: NodeJS.Timeout;

  before(async () => {
    world = await RolloutWorld.open();
    folder = await mkdtemp(path.join(tmpdir(), "hone-death-"));
    gateway = await world.gateway({ model: RUN, replica: "one", behave: () => world.answer("01") });
    // Reported regularly, as readers drop replicas that do not report.
    reporting = setInterval(() => void gateway.report(), 1_000);
  });
  after(async () => {
    clearInterval(reporting);
    await world?.close();
    await rm(folder, { recursive: true });
  });

  const settings = () => ({
    HONE_FILES: folder,
    HONE_ALLOW_COMMANDS: "yes",
    PATH: `${path.dirname(process.execPath)}:${process.env.PATH ?? ""}`,
  });
  /** The first attempt makes a call, writes its process id and keeps running; the next one makes a call and ends. */
  const script = `
    const { existsSync, renameSync, writeFileSync } = await import("node:fs");
    const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key } = process.env;
    const body = JSON.stringify({ model: "any", messages: [{ role: "user", content: "0123" }] });
    const answer = await fetch(url + "/chat/completions", { method: "POST", headers: { "x-api-key": key }, body });
    if (!answer.ok) throw new Error(await answer.text());
    if (!existsSync("held.json")) {
      writeFileSync("held.new", JSON.stringify({ pid: process.pid, path: new URL(url).pathname, key }));
      renameSync("held.new", "held.json");
      setInterval(() => undefined, 1_000);
    }`;

  test("ends its command and its session, and another process plays the job and stores it once", async () => {
    const main = path.join(import.meta.dirname, "main.ts");
    const first = spawn(process.execPath, [main], { env: world.environment(settings()), stdio: "ignore" });
    try {
      await world.submit(
        world.job(RUN, {
          task: { id: "row:0", rowJson: '{"prompt":"0123"}' },
          agentName: "command",
          agentConfigJson: JSON.stringify({ command: ["node", "--input-type=module", "-e", script] }),
          limits: { maxTurns: 4, maxContextTokens: 256, deadlineMs: 200_000, maxAttempts: 1 },
        }),
      );
      const held = await eventually(
        "the command at work",
        async () => JSON.parse(await readFile(path.join(folder, "held.json"), "utf8")) as Held,
        { deadlineMs: 90_000 },
      );
      first.kill("SIGKILL");
      await eventually("the end of its command", () => !isAlive(held.pid));
      const heir = await world.startService(settings());
      const late = await fetch(`${heir.http.url}${held.path}/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": held.key },
        body: "{}",
      });
      assert.equal(late.status, 404);
      assert.match(await late.text(), /session_over/);
    } finally {
      first.kill("SIGKILL");
    }
    const episode = await world.episodeOf(RUN);
    assert.equal(episode.outcome, Outcome.COMPLETED);
    assert.equal(episode.attempt, 1);
    assert.equal(episode.samples.length, 1);
    // Both attempts sent the same prompt with the same seed.
    const [before, again] = gateway.requests;
    assert.deepEqual([again?.promptIds, again?.seed], [before?.promptIds, before?.seed]);
  });
});

interface Held {
  readonly pid: number;
  readonly path: string;
  readonly key: string;
}
