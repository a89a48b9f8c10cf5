import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  type Bus,
  connectBus,
  ensureTopology,
  publishStored,
  readOrdered,
  StreamName,
  subjects,
} from "@hone/messaging";
import { EpisodeSchema, Outcome, RolloutJobSchema } from "@hone/proto-gen/rollout";
import { type RunningService, startService } from "@hone/service-kit";
import { silentLogger } from "@hone/telemetry";
import { eventually, startNats } from "@hone/testing";
import { loadTokenizer, type Tokenizer } from "@hone/tokenizer";
import { readConfig } from "./config.ts";
import { agentRolloutService } from "./service.ts";
import { FakeGateway } from "./testing-gateway.ts";

/* SIGKILL of agent-rollout with a command at work: the command goes with it, its session is over, and its job comes again. */

const RUN = "death-1";
const examples = path.join(import.meta.dirname, "../../../examples");

describe("the death of agent-rollout", { timeout: 240_000 }, () => {
  let nats: Awaited<ReturnType<typeof startNats>>;
  let bus: Bus;
  let tokenizer: Tokenizer;
  let folder: string;
  let gateway: FakeGateway;
  let reporting: NodeJS.Timeout;
  let heir: RunningService | undefined;

  before(async () => {
    nats = await startNats();
    bus = await connectBus({ url: nats.url, name: "death-test" });
    await ensureTopology(bus);
    tokenizer = await loadTokenizer(path.join(examples, "01-frozen-lake"));
    folder = await mkdtemp(path.join(tmpdir(), "hone-death-"));
    const tokenIds = tokenizer.encode("01<|end|>");
    gateway = new FakeGateway(bus, {
      model: RUN,
      replica: "one",
      behave: () => ({ kind: "answer", tokenIds }),
    });
    await gateway.report();
    // Readers age what they heard.
    reporting = setInterval(() => void gateway.report(), 1_000);
  });
  after(async () => {
    clearInterval(reporting);
    await heir?.stop();
    await gateway.stop();
    await bus.close();
    await nats.stop();
    await rm(folder, { recursive: true });
  });

  const environment = () => ({
    HONE_NATS_URL: nats.url,
    HONE_STATE_DIR: examples,
    HONE_FILES: folder,
    HONE_AGENT_COMMANDS: "allow",
    PATH: `${path.dirname(process.execPath)}:${process.env.PATH ?? ""}`,
  });
  /** The first attempt calls once, says who it is, and stays; the next one calls and ends. */
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

  test("ends its command and its session; the job is played by another process, and stored once", async () => {
    const main = path.join(import.meta.dirname, "main.ts");
    const first = spawn(process.execPath, [main], { env: environment(), stdio: "ignore" });
    try {
      const job = create(RolloutJobSchema, {
        runId: RUN,
        slot: { split: "train", step: 1, task: 0, index: 0 },
        task: { id: "row:0", rowJson: '{"prompt":"0123"}' },
        agentName: "command",
        agentConfigJson: JSON.stringify({ command: ["node", "--input-type=module", "-e", script] }),
        sampling: { temperature: 1, topP: 1, maxNewTokens: 16 },
        limits: { maxTurns: 4, maxContextTokens: 256, deadlineMs: 200_000, maxAttempts: 1 },
        judgesJson: "[]",
        tokenizerDigest: tokenizer.digest,
        tokenizerPath: "01-frozen-lake",
      });
      await publishStored(bus, subjects.rolloutJob(RUN), RolloutJobSchema, job);
      const held = await eventually(
        "the command at work",
        async () => JSON.parse(await readFile(path.join(folder, "held.json"), "utf8")) as Held,
        { deadlineMs: 90_000 },
      );
      first.kill("SIGKILL");
      await eventually("the end of its command", () => !isAlive(held.pid));
      heir = await startService(agentRolloutService, {
        config: readConfig(environment()),
        logger: silentLogger(),
      });
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
    const stop = new AbortController();
    const options = {
      stream: StreamName.episodes,
      filter: subjects.rolloutFinished(RUN),
      signal: stop.signal,
    };
    for await (const { message } of readOrdered(bus, EpisodeSchema, options)) {
      assert.equal(message.outcome, Outcome.COMPLETED);
      assert.equal(message.attempt, 1);
      assert.equal(message.samples.length, 1);
      break;
    }
    stop.abort();
    // Both attempts sampled alike: the same prompt with the same seed.
    const [before, again] = gateway.requests;
    assert.deepEqual([again?.promptIds, again?.seed], [before?.promptIds, before?.seed]);
  });
});

interface Held {
  readonly pid: number;
  readonly path: string;
  readonly key: string;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
