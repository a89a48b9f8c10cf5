import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import type { GenerateCall, PolicyGeneration } from "@hone/agents";
import { parseRunFile } from "@hone/config";
import { Outcome } from "@hone/core";
import { ChatRenderer, loadTokenizer } from "@hone/tokenizer";
import { chatmlTokenizer } from "@hone/tokenizer/testing";
import "./domain/built-ins.ts";
import { jobOf, runJob, WritingPolicy } from "./domain/testing/row-rollouts.ts";

/* Plays in Gymnasium and reasoning-gym through the Python server of examples/08-environment-service, and kills it. */

const REPOSITORY = path.join(import.meta.dirname, "../../..");
const EXAMPLE = path.join(REPOSITORY, "examples", "08-environment-service");
const CHECK_TIMEOUT_MS = 60_000;

const python = findPython();
const skip =
  python === undefined &&
  "no Python has gymnasium and reasoning-gym; install examples/08-environment-service/requirements.txt in .venv, or set HONE_PYTHON to one that has them";

function findPython(): string | undefined {
  const own = path.join(REPOSITORY, ".venv", "bin", "python");
  const candidates = [process.env.HONE_PYTHON ?? "", ...(existsSync(own) ? [own] : []), "python3"];
  const options = { cwd: tmpdir(), timeout: CHECK_TIMEOUT_MS };
  return candidates.find(
    (each) => each !== "" && spawnSync(each, ["-c", "import gymnasium, reasoning_gym"], options).status === 0,
  );
}

const renderer = new ChatRenderer(chatmlTokenizer());

/** The server in a process of its own. */
class PythonServer {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** @param port 0 = any that is free. */
  static async start(port = 0): Promise<PythonServer> {
    const args = [path.join(EXAMPLE, "server.py"), "--port", String(port)];
    const child = spawn(python ?? "", args, {
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    for await (const line of createInterface({ input: child.stdout ?? assert.fail("no output") })) {
      const url = /http:\S+/.exec(line)?.[0];
      if (url !== undefined) return new PythonServer(child, url);
    }
    throw new Error("the server ended without saying its address");
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }
}

/** Does something before an answer of the model. */
class InterruptingPolicy extends WritingPolicy {
  readonly #interrupt: (count: number) => Promise<void>;

  constructor(interrupt: (count: number) => Promise<void>, ...texts: readonly string[]) {
    super(renderer, ...texts);
    this.#interrupt = interrupt;
  }

  override async generate(call: GenerateCall): Promise<PolicyGeneration> {
    const generation = await super.generate(call);
    await this.#interrupt(this.calls.length);
    return generation;
  }
}

describe("environments in Python", { skip, timeout: 120_000 }, () => {
  let server: PythonServer;
  before(async () => {
    server = await PythonServer.start();
  });
  after(() => server?.kill());

  const play = async (
    envType: string,
    answers: readonly string[] | WritingPolicy,
    { seed = 3, params = {}, ...config }: { seed?: number; params?: object; [key: string]: unknown } = {},
  ) => {
    const policy = answers instanceof WritingPolicy ? answers : new WritingPolicy(renderer, ...answers);
    const configJson = JSON.stringify({ url: server.url, envType, evaluate: false, params, ...config });
    const job = jobOf({
      agentName: "gym",
      agentConfigJson: "{}",
      task: {
        id: `${envType}:${seed}`,
        environment: { name: "environment_service", seed, configJson },
        row: undefined,
      },
    });
    return { record: await runJob(job, renderer, policy), policy };
  };
  /** Gymnasium's own map of 4 x 4 without slips, and a way through it. */
  const LAKE = { params: { is_slippery: false } };
  const WAY = ["Down", "I go down.", "2", "Right", "Down", "Right"];

  test("FrozenLake is played to the goal with actions by name and by number, and its reward is Gymnasium's", async () => {
    const { record, policy } = await play("FrozenLake-v1", WAY, LAKE);
    assert.equal(record.reason, "");
    assert.equal(record.outcome, Outcome.completed);
    assert.deepEqual(
      record.turns.map(({ reward }) => reward),
      [0, 0, 0, 0, 0, 1],
    );
    assert.equal(record.metrics.success, 1);
    assert.match(policy.prompts[0] ?? "", /Left, Down, Right, Up\.\n\nPFFF\nFHFH\nFFFH\nHFFG/);
    assert.match(policy.prompts[1] ?? "", /SFFF\nPHFH\nFFFH\nHFFG/);
    assert.deepEqual(
      record.turns.map(({ info }) => info?.action),
      ["Down", "Down", "Right", "Right", "Down", "Right"],
    );
  });

  test("a fall into a hole is no success, and an answer without an action moves nothing and costs what params say", async () => {
    const { record, policy } = await play("FrozenLake-v1", ["Hm.", "Right", "Down"], {
      params: { is_slippery: false, invalid_reward: -0.5 },
    });
    assert.equal(record.outcome, Outcome.completed);
    assert.deepEqual(
      record.turns.map(({ reward }) => reward),
      [-0.5, 0, 0],
    );
    assert.match(policy.prompts[1] ?? "", /That is none of Left, Down, Right, Up\.\n\nPFFF/);
    const { success, action_is_valid } = record.metrics;
    assert.deepEqual([success, action_is_valid], [0, 2 / 3]);
  });

  test("the same task is the same map with the same slips, and another task another map", async () => {
    const params = { map_size: 5, max_episode_steps: 5 };
    const show = async (seed: number) => {
      const { record, policy } = await play("FrozenLake-v1", ["Right"], { seed, params });
      return { prompts: policy.prompts, rewards: record.turns.map(({ reward }) => reward) };
    };
    const [once, again, other] = [await show(4), await show(4), await show(5)];
    assert.deepEqual(again, once);
    assert.notEqual(other.prompts[0], once.prompts[0]);
  });

  test("Gymnasium's limit of steps truncates the episode, and evaluate gives its return", async () => {
    const params = { max_episode_steps: 3 };
    const { record } = await play("CartPole-v1", ["Left", "Right"], { params, evaluate: true });
    assert.equal(record.outcome, Outcome.truncated);
    assert.deepEqual(
      record.turns.map(({ reward }) => reward),
      [0, 0, 3],
    );
    assert.equal(record.metrics.score, 3);
  });

  test("Taxi and the cliff are drawn without colours", async () => {
    for (const envType of ["Taxi-v4", "CliffWalking-v1"]) {
      const { policy } = await play(envType, ["North"], { maxSteps: 2 });
      assert.equal(policy.prompts.join("").includes("\u001b"), false);
    }
  });

  test("the tokenizer of the run on reasoning-gym knows every word of its tasks, so that none stands for an unknown one", async () => {
    const folder = path.join(EXAMPLE, "reasoning");
    const { dataset } = parseRunFile(await readFile(path.join(folder, "run.yaml"), "utf8"));
    assert.ok(dataset.train.source === "environment_service");
    const { envType, config } = dataset.train;
    const tokenizer = await loadTokenizer(folder);
    const [unknown] = tokenizer.encode("@");
    assert.equal(tokenizer.decode([unknown ?? 0]), "<|unk|>");
    for (let seed = 0; seed < 200; seed++) {
      const { policy } = await play(envType, ["1"], { ...config, seed });
      const [prompt = ""] = policy.prompts;
      const task = prompt.slice(
        prompt.indexOf("Your task"),
        prompt.indexOf("</answer>.") + "</answer>.".length,
      );
      assert.ok(!tokenizer.encode(task).includes(unknown ?? 0), task);
    }
  });

  test("a task of reasoning-gym is scored by its own rules", async () => {
    const config = { envType: "reasoning_gym/chain_sum", params: { max_digits: 2 } };
    const { record: wrong, policy } = await play(config.envType, ["I do not know."], config);
    assert.equal(wrong.outcome, Outcome.completed);
    assert.equal(wrong.environmentReturn, 0);
    const [, sum = ""] = /problem: ([\d +-]+) =/.exec(policy.prompts[0] ?? "") ?? [];
    const terms = sum.replaceAll(" ", "").match(/[+-]?\d+/g) ?? [];
    assert.ok(terms.length > 1, sum);
    const right = terms.reduce((total, term) => total + Number(term), 0);
    const { record } = await play(config.envType, [`So it is <answer>${right}</answer>.`], config);
    assert.equal(record.environmentReturn, 1);
    assert.equal(record.metrics.success, 1);
  });

  test("an environment that does not exist ends the rollout for good, with Gymnasium's words", async () => {
    for (const envType of ["FrozenLak-v1", "os:system", "reasoning_gym/chain_summ", "Pendulum-v1"]) {
      const { record } = await play(envType, ["Left"]);
      assert.equal(record.outcome, Outcome.infraFailed);
      assert.match(record.reason, /the environment cannot give this task: .*correct envType/);
      assert.deepEqual(record.failedAttempts, []);
    }
  });

  test("a server that is killed in mid-episode and started again: the attempt is repeated, and only the second is scored", async () => {
    const { port } = server;
    const kill = async (count: number) => {
      if (count !== 6) return;
      await server.kill();
      server = await PythonServer.start(port);
    };
    const policy = new InterruptingPolicy(kill, ...WAY, ...WAY);
    const { record } = await play("FrozenLake-v1", policy, LAKE);
    assert.match(record.failedAttempts[0] ?? "", /take a step in the environment.*there is no instance/);
    assert.equal(record.outcome, Outcome.completed);
    assert.equal(record.environmentReturn, 1);
    assert.equal(record.turns.length, 6);
  });

  test("a server that is killed in mid-episode for good ends the rollout as infra_failed", async () => {
    const policy = new InterruptingPolicy(
      async (count) => {
        if (count === 6) await server.kill();
      },
      ...WAY,
      ...WAY,
    );
    const { record } = await play("FrozenLake-v1", policy, LAKE);
    assert.equal(record.outcome, Outcome.infraFailed);
    assert.match(record.failedAttempts[0] ?? "", /take a step in the environment.*does not answer/);
    assert.match(record.reason, /create an instance of the environment.*does not answer/);
    assert.equal(record.environmentReturn, 0);
    assert.deepEqual(record.samples, []);
  });
});
