/** Tests the views of chats, search, comparison, notes, costs and control in a real browser. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { eventually } from "@hone/testing";
import { chromiumOrSkip } from "@hone/testing/chromium";
import type { Page } from "playwright-core";
import { ATTACKS, CHAT, RUN, startViews, type ViewsStack, WAITING } from "../testing/views-stack.ts";

const { chromium, skip } = await chromiumOrSkip("the views are");

describe("the page's views in a browser", { timeout: 240_000, skip }, () => {
  let views: ViewsStack;
  let page: Page;

  before(async () => {
    views = await startViews(chromium ?? "");
    page = views.page;
  });
  after(() => views?.[Symbol.asyncDispose]());

  const open = (place: string) => views.open(place);
  const look = <Value>(expression: string, of?: Page) => views.look<Value>(expression, of);

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

  test("finds rollouts by their words, keeps search and sort in the address, and leads to the place", async () => {
    await open(RUN);
    const rows = page.locator(".rollouts tbody tr[data-excerpt]");
    await page.locator(".search-input").fill('"ic 709"');
    await eventually("the matches", async () => (await rows.count()) === 3);
    // The list may have been asked for just when the text was there, and the address follows a little later.
    await eventually("the search in the address", async () => /\?q=%22ic\+709%22$/.test(page.url()));
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
    const refusal = page.getByText("the query has no word that must occur");
    await refusal.waitFor();
    const refusedAgain = page.waitForResponse((response) => response.status() === 400);
    await views.changeRun();
    await refusedAgain;
    assert.ok(await refusal.isVisible());
    // The browser has told of every refused request once it is elsewhere.
    await open(RUN);
    views.complaints.splice(
      0,
      views.complaints.length,
      ...views.complaints.filter((complaint) => !/400/.test(complaint)),
    );
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
    const exported = await views.context.request.get(`${views.url}/api/notes.jsonl?run=frozen-lake-1`);
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
    assert.deepEqual(views.asked, []);
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByText("Pause was requested.").waitFor();
    assert.deepEqual(views.asked.splice(0), ["pause frozen-lake-1"]);
    await page.locator("#waiting").getByRole("link", { name: "train.41.0.0" }).click();
    await page.waitForURL(`**${WAITING}`);
    await page.getByText(/time for its reward for another 5\d min/).waitFor();
    await page.getByLabel("Reward", { exact: true }).last().fill("0.5");
    await page.getByLabel("Why").fill("polite");
    await page.getByRole("button", { name: "Give the reward" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Give the reward" }).click();
    await page.waitForURL(`**${RUN}`);
    assert.deepEqual(views.asked.splice(0), ["reward 0.5 people polite"]);
  });

  test("the browser complained about nothing", () => {
    assert.deepEqual(views.complaints, []);
  });
});
