import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually, temporaryFolder } from "@hone/testing";
import { failureOf } from "../support/failure.ts";
import { publishRequest } from "../support/follow.ts";
import { scoredEpisodes } from "../support/inspect/scored-episodes.ts";
import { scrape } from "../support/inspect/scrape.ts";
import { findPython } from "../support/processes/find-python.ts";
import { runPython } from "../support/processes/run-python.ts";
import { startStack, type TestStack } from "../support/stack.ts";
import { callingTokenizerFiles } from "./calling-tokenizer.ts";
import { chatClientSuite } from "./chat-client.ts";
import { type HeldSessions, holdSessions } from "./held-sessions.ts";
import { messagesClientSuite } from "./messages-client.ts";
import { responsesClientSuite } from "./responses-client.ts";
import type { SuiteRecord, SuiteSessions } from "./session-suite.ts";

/*
 * Tests sessions of a run with the official clients, and then the record of those sessions: it must hold the clients' answers
 * token by token.
 */

const RUN = "held";
const GROUP_SIZE = 2;
const OPEN_MS = 60_000;
const END_MS = 60_000;
const MAX_TRIES = 20;

const python = findPython("openai", "OpenAI");
const skipPython =
  python === undefined
    ? "no Python with the package openai: run `pip install openai`, or set HONE_PYTHON to one that has it"
    : false;
if (skipPython !== false) console.warn(`SKIPPED: the Python client is not tested, as there is ${skipPython}`);

interface Answered {
  readonly promptIds: readonly number[];
  readonly tokenIds: readonly number[];
}

describe("official clients against a session", { timeout: 300_000 }, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let stack: TestStack;
  let held: HeldSessions;
  const sessions: { -readonly [Name in keyof SuiteSessions]: SuiteSessions[Name] } = {
    first: { url: "", key: "" },
    second: { url: "", key: "" },
  };
  const answered: Answered[] = [];
  let numLeft = 0;

  const running = async () =>
    (await scrape(stack, "inference-gateway")).sum("hone_engine_sequences_running") ?? 0;
  const record: SuiteRecord = {
    answered: (promptIds, tokenIds) => void answered.push({ promptIds, tokenIds }),
    async untilItRuns(call) {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        let isSettled = false;
        const settle = () => {
          isSettled = true;
        };
        call().then(settle, settle);
        while (!isSettled) if ((await running()) > 0) return;
      }
      assert.fail(`none of ${MAX_TRIES} calls was seen running`);
    },
    async abandon(leave) {
      numLeft++;
      await leave();
      await eventually("the generation to end", async () => (await running()) === 0);
    },
  };

  before(async () => {
    folder = await temporaryFolder("clients");
    const files = path.join(folder.path, "files");
    await mkdir(files);
    await writeFile(path.join(files, "rows.jsonl"), '{"prompt":"a session"}\n');
    held = await holdSessions(files);
    stack = await startStack({ env: { HONE_FILES: files } });
    const run = {
      name: RUN,
      seed: 11,
      model: {
        init: {
          architecture: "qwen3",
          hiddenSize: 32,
          numLayers: 2,
          numHeads: 2,
          maxPositions: 4_096,
          tokenizer: { files: callingTokenizerFiles() },
        },
      },
      dataset: { train: { source: "jsonl", path: "rows.jsonl" } },
      agent: held.agent,
      rollout: {
        tasksPerStep: 1,
        groupSize: GROUP_SIZE,
        maxTurns: 1_000,
        maxContextTokens: 2_048,
        deadlineMs: 600_000,
        sampling: { temperature: 1, maxNewTokens: 1_500 },
      },
      judge: [{ kind: "regex", pattern: "." }],
      trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.001 } },
    };
    await publishRequest(stack.bus, JSON.stringify(run));
    const opened = held.opened(GROUP_SIZE, OPEN_MS).catch(async (cause) => {
      throw failureOf(cause, await stack.describe());
    });
    const [first, second] = await opened;
    Object.assign(sessions, { first, second });
  });
  after(async () => {
    await held?.close();
    await stack?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  chatClientSuite("openai, chat completions", sessions, record);
  responsesClientSuite("openai, responses", sessions, record);
  messagesClientSuite("anthropic, messages", sessions, record);

  test("openai for Python", { skip: skipPython }, async () => {
    const script = path.join(import.meta.dirname, "openai_client.py");
    const { code, output } = await runPython(python ?? "", script, {
      OPENAI_BASE_URL: `${sessions.first.url}/v1`,
      OPENAI_API_KEY: sessions.first.key,
      OTHER_KEY: sessions.second.key,
    });
    numLeft++;
    assert.equal(code, 0, output);
    assert.equal(output.match(/^ok /gm)?.length, 8, output);
  });

  test("the record holds the clients' answers, and abandoned generations are not counted as answers", async () => {
    const episodes = scoredEpisodes(stack.bus, { run: RUN, count: GROUP_SIZE, deadlineMs: END_MS });
    held.release();
    const scored = await episodes;
    assert.deepEqual(
      scored.map(({ episode }) => episode?.reason),
      scored.map(() => ""),
    );
    const samples = scored.flatMap(({ episode }) => episode?.samples ?? []);
    assert.ok(answered.length > 20);
    for (const { promptIds, tokenIds } of answered) {
      const begin = promptIds.length;
      const end = begin + tokenIds.length;
      const all = [...promptIds, ...tokenIds];
      const isTrained = samples.some(
        (sample) =>
          sample.lossMask.subarray(begin, end).every((bit) => bit === 1) &&
          all.every((id, index) => sample.tokenIds[index] === id),
      );
      assert.ok(isTrained, `${tokenIds.length} tokens after ${begin}`);
    }
    const abandoned = scored.reduce((sum, { episode }) => sum + (episode?.metrics.session_abandoned ?? 0), 0);
    // On a busy machine some generations end before their clients disconnect.
    assert.ok(abandoned >= numLeft / 2 && abandoned <= numLeft, `${abandoned} of ${numLeft}`);
  });
});
