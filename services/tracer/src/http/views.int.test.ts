/**
 * Tests the views of chats, search, comparison, notes, costs and control in a real browser: by pointer, by keyboard alone, on a narrow
 * screen, and with texts that were written to do harm.
 */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { publishStored, RewardGiver, RunControl, respond, subjects } from "@hone/messaging";
import { RewardReplySchema, RewardRequestSchema, RewardResult } from "@hone/proto-gen/judge";
import { ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { ControlReplySchema, ControlRequestSchema } from "@hone/proto-gen/run";
import type { RunningService } from "@hone/service-kit";
import { eventually } from "@hone/testing";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { chatEpisode } from "../testing/chat-episode.ts";
import { findChromium, launchChromium } from "../testing/find-chromium.ts";
import { ATTACKS, OWNED } from "../testing/hostile-texts.ts";
import { publishSampleRun } from "../testing/sample-run.ts";
import { startStack, type TracerStack } from "../testing/stack.ts";
import { storeWaitingRollout } from "../testing/waiting-rollout.ts";

const chromium = await findChromium(process.env.HONE_CHROMIUM);
const skip =
  chromium === undefined
    ? "no chromium: install it (apt-get install chromium) or name it by HONE_CHROMIUM"
    : false;
if (skip !== false) console.warn(`SKIPPED: the views are not tested in a browser, as there is ${skip}`);

const TOKEN = "the-token-of-the-page-0123456789";
const RUN = "/runs/frozen-lake-1";
const CHAT = `${RUN}/rollouts/eval.40.5.1`;
const HOSTILE = `${RUN}/rollouts/eval.40.6.0`;
const WAITING = `${RUN}/waiting/train.41.0.0`;
describe("the page's views in a browser", { timeout: 240_000, skip }, () => {
  let stack: TracerStack;
  let tracer: RunningService;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let complaints: string[];
  const asked: string[] = [];

  before(async () => {
    stack = await startStack(Date.now() - 100_000);
    const onError = (error: unknown) => {
      throw error;
    };
    for (const verb of [RunControl.pause, RunControl.cancel]) {
      respond(stack.bus, subjects.runControl(verb, "*"), ControlRequestSchema, ControlReplySchema, {
        handle: ({ message, reply }) => {
          asked.push(`${verb} ${message.runId}`);
          return reply(create(ControlReplySchema, {}));
        },
        onError,
      });
    }
    respond(stack.bus, subjects.judgeReward(RewardGiver.page), RewardRequestSchema, RewardReplySchema, {
      handle: ({ message, reply }) => {
        asked.push(`reward ${message.value} ${message.judge} ${message.reason}`);
        return reply(create(RewardReplySchema, { result: RewardResult.TAKEN }));
      },
      onError,
    });
    // Without a token at first, as the sample run's spans come without one.
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
    await storeWaitingRollout(stack);
    await open.stop();
    tracer = await stack.startTracer({
      HONE_TRACER_TOKEN: TOKEN,
      HONE_TRACER_PRICE_PER_HOUR: "2.40",
      HONE_TRACER_CURRENCY: "EUR",
    });
    browser = await launchChromium(chromium ?? "");
    context = await browser.newContext({ viewport: { width: 1_280, height: 900 }, locale: "en-US" });
    page = await context.newPage();
    complaints = [];
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("request", (request) => {
      if (!request.url().startsWith(tracer.http.url)) complaints.push(`asks ${request.url().slice(0, 100)}`);
    });
    await page.goto(`${tracer.http.url}/?token=${TOKEN}`);
  });
  after(async () => {
    await browser?.close();
    await tracer?.stop();
    await stack?.[Symbol.asyncDispose]();
  });

  const open = (place: string) => page.goto(`${tracer.http.url}${place}`);
  const look = async <T>(expression: string, of: Page = page) => (await of.evaluate(expression)) as T;

  test("shows a turn as a chat, with folded thoughts, cards of calls and results, and its branches as a tree", async () => {
    await open(CHAT);
    const first = page.locator("#turn-0 .chat");
    await first.waitFor();
    assert.deepEqual(await first.locator(".chat-role").allInnerTexts(), ["System", "User", "Model"]);
    assert.match(await first.innerText(), /Which train gets me from Zürich/);
    assert.match(
      await first.locator('.chat-card[data-kind="call"]').innerText(),
      /calls find_trains\s+\{[\s\S]*"arriveBefore": "09:00"/,
    );
    const thought = first.locator("details.chat-thought");
    assert.equal(await thought.locator(".chat-text").isVisible(), false);
    await thought.locator("summary").click();
    assert.match(await thought.innerText(), /I ask the timetable/);
    assert.match(await page.locator("#turn-1 .chat").innerText(), /^Tool\s+Result[\s\S]*IC 709/);
    assert.match(
      await page.locator("#turn-2 .chat").innerText(),
      /A call that cannot be read: it is no JSON/,
    );

    const tree = page.locator(".sample-tree");
    assert.match(await tree.innerText(), /2 samples, 1 of them branched/);
    await tree.getByRole("button", { name: "Sample 1" }).click();
    assert.deepEqual(
      await look(
        "[...document.querySelectorAll('.turn')].filter((card) => !card.hidden).map(({ id }) => id)",
      ),
      ["turn-0", "turn-2"],
    );
    await tree.getByRole("button", { name: "All turns" }).click();
    await page.getByText("Chat", { exact: true }).click();
    assert.equal(await page.locator("#turn-0 .tokens").isVisible(), false);
    assert.match(page.url(), /\?view=chat$/);
    await page.reload();
    await page.locator("#turn-0 .chat").waitFor();
    assert.equal(await page.locator("#turn-0 .tokens").isVisible(), false);
  });

  test("hostile texts stay texts in every view", async () => {
    const places = [
      HOSTILE,
      RUN,
      `${RUN}?q=click`,
      "/search?q=script",
      `/compare?runs=frozen-lake-1&split=eval&task=${encodeURIComponent(`<img src=x onerror="${OWNED}">\u202e`)}`,
    ];
    for (const place of places) {
      await open(place);
      await page.locator(".chat-message, .rollouts tbody tr").first().waitFor();
      await page.waitForTimeout(200);
      const counts = await look<Record<string, number>>(`({
        markup: document.querySelectorAll("#view script, #view iframe, #view img, #view style, #view [onload], #view [onerror], #view [onmouseover], #view [style*=visibility]").length,
        links: [...document.querySelectorAll("#view a")].filter(({ href }) => !href.startsWith(location.origin)).length,
        controls: [...document.querySelector("#view").innerText].filter((letter) => /[\\u0000-\\u0008\\u001b\\u009b\\u202a-\\u202e\\u2066-\\u2069]/.test(letter)).length,
      })`);
      assert.deepEqual(counts, { markup: 0, links: 0, controls: 0 }, place);
      assert.doesNotMatch(await page.title(), /owned/);
      assert.ok((await look<number>("document.documentElement.scrollWidth - innerWidth")) <= 0, place);
    }
    await open(HOSTILE);
    const chat = page.locator("#turn-0 .chat");
    await chat.waitFor();
    assert.match(await chat.innerText(), /\\u202egnp\.exe/);
    // A long text is cut until somebody wants all of it.
    const more = page.getByRole("button", { name: /^Show all 3\d\d,\d\d\d characters/ }).first();
    await more.click();
    assert.ok((await look<number>("document.querySelector('#turn-0 .chat').textContent.length")) > 300_000);
  });

  test("finds rollouts by their words, keeps search and sort in the address, and leads to the place", async () => {
    await open(RUN);
    const rows = page.locator(".rollouts tbody tr[data-excerpt]");
    await page.locator(".search-input").fill('"ic 709"');
    await eventually("the matches", async () => (await rows.count()) === 3);
    assert.match(page.url(), /\?q=%22ic\+709%22$/);
    assert.match(await page.locator(".excerpt").first().innerText(), /tool call of turn 2: .*IC 709/);
    await page.locator("select[name=place]").selectOption("prompt");
    await page.getByText("No rollout matches these filters.").waitFor();
    await page.locator("select[name=place]").selectOption("");
    await page.getByRole("button", { name: "Reward", exact: true }).click();
    await eventually("the sort", async () => /sort=reward/.test(page.url()));
    assert.equal(await page.locator("th[aria-sort]").getAttribute("aria-sort"), "descending");
    const first = page.locator(".rollouts .slot-link").first();
    await eventually("the best", async () => (await first.innerText()) === "eval.40.5.1");
    await page.reload();
    await eventually("the same list", async () => (await first.innerText()) === "eval.40.5.1");
    assert.equal(await page.locator(".search-input").inputValue(), '"ic 709"');
    await page.locator(".excerpt").first().click();
    await page.waitForURL(/eval\.40\.5\.1\?turn=1$/);
    await page.locator("#turn-1[data-found]").waitFor();
    await open(`${RUN}?q=!!`);
    await page.getByText("the query has no word that must occur").waitFor();
    complaints = complaints.filter((complaint) => !/400/.test(complaint));
  });

  test("compares runs: curves over each other, settings that differ, the same task side by side", async () => {
    await open("/compare");
    await page.getByText("Choose the runs to compare").waitFor();
    for (const runId of ["frozen-lake-1", "frozen-lake-2"]) {
      await page.getByLabel("Add a run").selectOption(runId);
      await page.locator(".compared-run", { hasText: runId }).waitFor();
    }
    assert.match(page.url(), /runs=frozen-lake-1%2Cfrozen-lake-2$/);
    await eventually(
      "the curves",
      async () => (await page.locator("#compared-curve path.line:not(.line-raw)").count()) === 2,
    );
    await page.getByLabel("Metric", { exact: true }).selectOption("entropy");
    await eventually("another metric", async () =>
      /frozen-lake-2: 1\.\d+ at step 1/.test(
        (await page.locator("#compared-curve .chart").getAttribute("aria-label")) ?? "",
      ),
    );
    assert.match(
      await page.locator("#settings").innerText(),
      /model\.init\.tokenizer\s+"runs\/frozen-lake-1\/tokenizer"\s+"runs\/frozen-lake-2/,
    );
    await page.getByRole("button", { name: "frozen_lake:1281" }).click();
    const sides = page.locator("#side-by-side .side");
    await eventually("both sides", async () => (await sides.locator(".chat").count()) >= 4);
    await page.getByLabel("Left rollout").selectOption("frozen-lake-1/train.40.1.3");
    await sides.first().getByText("train.40.1.3", { exact: true }).waitFor();
    await page.reload();
    await sides.first().getByText("train.40.1.3", { exact: true }).waitFor();
  });

  test("takes notes and scores, shows them as text, and removes them after a question", async () => {
    await open(CHAT);
    const notes = page.locator("#notes");
    await notes.getByLabel("Note").fill(`It is right. ${ATTACKS.slice(0, 300)}`);
    await notes.getByLabel("Score").fill("0.75");
    await notes.getByLabel("About").selectOption("1");
    await notes.getByLabel("By").fill("Ada");
    await notes.getByRole("button", { name: "Add note" }).click();
    const note = notes.locator(".note");
    await note.waitFor();
    assert.match(
      await note.innerText(),
      /Ada\s+turn 2\s+just now\s+score 0\.75[\s\S]*It is right\. <script>/,
    );
    const exported = await context.request.get(`${tracer.http.url}/api/notes.jsonl?run=frozen-lake-1`);
    assert.equal((JSON.parse((await exported.text()).trim()) as { score: number }).score, 0.75);
    await notes.getByRole("button", { name: "Remove" }).click();
    await page.keyboard.press("Escape");
    assert.equal(await note.count(), 1);
    await notes.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await eventually("the note to be gone", async () => (await note.count()) === 0);
    // Who wrote is known the next time.
    await page.reload();
    await eventually("the name", async () => (await notes.getByLabel("By").inputValue()) === "Ada");
  });

  test("shows what became of the tokens of each step, where its time went, and what it cost", async () => {
    await open(RUN);
    const cost = page.locator("#cost");
    await cost.locator("tbody tr").first().waitFor();
    assert.match(
      await cost.locator(".tiles").innerText(),
      /Tokens sampled\s+1,\d\d\d[\s\S]*In flat groups[\s\S]*Cost\s+0\.0\d+ EUR/,
    );
    const row = cost.locator("tbody tr").first();
    assert.match(
      (await row.locator(".stack").first().getAttribute("aria-label")) ?? "",
      /^play 1\.3 s, score 90 ms, train \d+ ms, commit .*publish/,
    );
    assert.match(
      (await row.locator(".stack").nth(1).getAttribute("aria-label")) ?? "",
      /gave a gradient \d+/,
    );
  });

  test("asks before a run is paused or cancelled, and gives a reward that is awaited", async () => {
    await open(RUN);
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByRole("dialog").getByText("cannot be resumed").waitFor();
    await page.getByRole("button", { name: "Back" }).click();
    assert.deepEqual(asked, []);
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByText("Pause was requested.").waitFor();
    assert.deepEqual(asked.splice(0), ["pause frozen-lake-1"]);
    await page.locator("#waiting").getByRole("link", { name: "train.41.0.0" }).click();
    await page.waitForURL(`**${WAITING}`);
    await page.getByText(/time for its reward for another 5\d min/).waitFor();
    await page.getByLabel("Reward", { exact: true }).last().fill("0.5");
    await page.getByLabel("Why").fill("polite");
    await page.getByRole("button", { name: "Give the reward" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Give the reward" }).click();
    await page.waitForURL(`**${RUN}`);
    assert.deepEqual(asked.splice(0), ["reward 0.5 people polite"]);
  });

  test("is usable by the keyboard alone", async () => {
    await open("/");
    await page.locator(".run-row").first().waitFor();
    const focused = () =>
      look<string>(
        "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText ?? '').slice(0, 60)",
      );
    /** Presses the tab key until something has the focus. */
    const tabTo = async (wanted: RegExp) => {
      for (let presses = 0; presses < 120; presses++) {
        await page.keyboard.press("Tab");
        const text = await focused();
        if (!wanted.test(text)) continue;
        const outline = await look<string>("getComputedStyle(document.activeElement).outlineStyle");
        assert.notEqual(outline, "none", `${text} does not show that it has the focus`);
        return;
      }
      assert.fail(`${wanted} was not reached by the tab key; the last is "${await focused()}"`);
    };
    await tabTo(/^Skip to content/);
    await tabTo(/^Search$/);
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/search$/);
    await page.locator(".search-input:focus").waitFor();
    await page.keyboard.type("timetable");
    await page.locator(".excerpt").first().waitFor();
    await tabTo(/^Reward$/);
    await page.keyboard.press("Enter");
    await eventually("the sort", async () => /sort=reward/.test(page.url()));
    await tabTo(/^eval\.40/);
    await page.keyboard.press("Enter");
    await page.locator("#turn-0").waitFor();
    await tabTo(/^All turns/);
    await tabTo(/Sample 1/);
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("#turn-1").isVisible(), false);
    await tabTo(/^Thoughts/);
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("#turn-0 .chat-thought .chat-text").isVisible(), true);
    await tabTo(/^Tokens of turn 1/);
    await page.keyboard.press("ArrowRight");
    await page.locator(".token-card").waitFor();
    await tabTo(/^Note$/);
    await page.keyboard.type("written without a pointer");
    await tabTo(/^Add note/);
    await page.keyboard.press("Enter");
    await page.locator(".note", { hasText: "written without a pointer" }).waitFor();
    await tabTo(/^Remove/);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await tabTo(/^Remove/);
    await page.keyboard.press("Enter");
    await eventually("the note to be gone", async () => (await page.locator(".note").count()) === 0);
  });

  test("no view scrolls sideways at a width of 390 pixels, in light and dark", async () => {
    const places = [
      "/",
      RUN,
      `${RUN}?q=timetable`,
      CHAT,
      HOSTILE,
      WAITING,
      "/search?q=train",
      "/compare?runs=frozen-lake-1,frozen-lake-2&task=frozen_lake%3A1281",
      `${RUN}/rollouts/train.40.1.3/trace`,
    ];
    for (const colorScheme of ["light", "dark"] as const) {
      const narrow = await context.newPage();
      await narrow.setViewportSize({ width: 390, height: 844 });
      await narrow.emulateMedia({ colorScheme });
      for (const place of places) {
        await narrow.goto(`${tracer.http.url}${place}`);
        await narrow.locator("#view h1").first().waitFor();
        await narrow.waitForTimeout(400);
        const wide = await look<string[]>(
          `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > innerWidth + 1).slice(0, 4).map(({ tagName, className }) => tagName + "." + className)`,
          narrow,
        );
        assert.deepEqual(wide, [], `${place} in ${colorScheme}`);
      }
      await narrow.close();
    }
  });

  test("the browser complained about nothing", () => {
    assert.deepEqual(complaints, []);
  });
});
