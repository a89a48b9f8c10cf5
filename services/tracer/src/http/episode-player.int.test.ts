/** Tests the player of episodes in a real browser. What answers for agent-rollout is the test, which speaks its protocol. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Slot } from "@hone/core";
import { publishStored, respond, subjects } from "@hone/messaging";
import { TaskSchema } from "@hone/proto-gen/dataset";
import {
  EnvironmentActionSchema,
  RenderReplySchema,
  type RenderRequest,
  RenderRequestSchema,
  ScoredEpisodeSchema,
} from "@hone/proto-gen/rollout";
import type { RunningService } from "@hone/service-kit";
import { eventually } from "@hone/testing";
import { chromiumOrSkip, launchChromium } from "@hone/testing/chromium";
import type { Browser, Page } from "playwright-core";
import { sampleEpisode } from "../testing/sample-episode.ts";
import { startStack, type TracerStack } from "../testing/stack.ts";

const { chromium, skip } = await chromiumOrSkip("the player is");

/** A transparent pixel. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64",
);

describe("the player of episodes in a browser", { timeout: 120_000, skip }, () => {
  let stack: TracerStack;
  let tracer: RunningService;
  let browser: Browser;
  let page: Page;
  let complaints: string[];
  let asked: string[];
  let answer: (request: RenderRequest) => MessageInitShape<typeof RenderReplySchema>;

  before(async () => {
    stack = await startStack(Date.now() - 100_000);
    respond(stack.bus, subjects.rolloutRender(), RenderRequestSchema, RenderReplySchema, {
      handle: ({ message, reply }) => reply(create(RenderReplySchema, answer(message))),
      onError: (error) => {
        throw error;
      },
    });
    tracer = await stack.startTracer();
    browser = await launchChromium(chromium ?? "");
    page = await browser.newPage({ viewport: { width: 1_280, height: 900 } });
    complaints = [];
    asked = [];
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("request", (request) => asked.push(request.url()));
  });
  after(async () => {
    await browser?.close();
    await tracer?.stop();
    await stack?.[Symbol.asyncDispose]();
  });

  const look = async <T>(expression: string) => (await page.evaluate(expression)) as T;
  const player = () => page.locator(".player");
  const place = () => player().locator(".player-place").innerText();
  /** Stores a rollout of three turns, each with an action, and opens it. */
  const open = async (index: number, isRow = false) => {
    const slot: Slot = { split: "train", step: 1, task: 1, index };
    const scored = sampleEpisode(stack.run.runId, slot, stack.run.tokenizer);
    const { episode } = scored;
    assert.ok(episode !== undefined && episode.turns.length >= 2);
    episode.turns.splice(2);
    episode.samples.splice(2);
    for (const turn of episode.turns) {
      turn.actions = [create(EnvironmentActionSchema, { text: `move ${turn.index}` })];
    }
    if (isRow) episode.task = create(TaskSchema, { id: "rows:1", rowJson: "{}" });
    await publishStored(stack.bus, subjects.rolloutScored(stack.run.runId), ScoredEpisodeSchema, scored);
    await stack.stored();
    await page.goto(`${tracer.http.url}/runs/${stack.run.runId}/rollouts/train.1.1.${index}`);
    await player().waitFor();
  };
  const svg = (title: string, inner = "") =>
    `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><title>${title}</title><rect width="40" height="40" fill="#123456"/>${inner}</svg>`;
  const threeFrames = (picture: (frame: number) => { case: "svg"; value: string }) => ({
    frames: [0, 1, 2].map((frame) => ({
      ...(frame > 0 && { turn: frame - 1, action: `move ${frame - 1}`, reward: frame }),
      observation: `observation ${frame}`,
      picture: picture(frame),
    })),
  });

  test("shows the picture that each turn saw with its prompt and answer, and the end, by the arrow keys", async () => {
    answer = () => threeFrames((frame) => ({ case: "svg", value: svg(`state ${frame}`) }));
    await open(0);
    const picture = player().locator("img");
    await picture.waitFor();
    assert.equal(await picture.getAttribute("alt"), "state 0");
    await eventually("the picture", () =>
      look<boolean>(`document.querySelector(".player img").naturalWidth === 40`),
    );
    assert.equal(await place(), "1 / 3");
    const side = player().locator(".player-side");
    assert.match(await side.innerText(), /^turn 1\n.*<\|user\|>.*<answer>/is);
    await player().getByRole("button", { name: "Step forward" }).click();
    assert.equal(await picture.getAttribute("alt"), "state 1");
    assert.match(await player().locator(".player-cause").innerText(), /^after turn 1: move 0, reward 1$/);
    assert.match(await side.innerText(), /^turn 2\n/i);
    await page.keyboard.press("End");
    assert.equal(await picture.getAttribute("alt"), "state 2");
    assert.match(await side.innerText(), /^the end of the episode/i);
    await page.keyboard.press("ArrowLeft");
    assert.equal(await place(), "2 / 3");
    await page.keyboard.press("Home");
    assert.equal(await place(), "1 / 3");
  });

  test("plays to the end, and stops there or when it is paused", async () => {
    await player().getByRole("button", { name: "Play" }).click();
    await eventually("the second frame", async () => (await place()) === "2 / 3");
    await player().getByRole("button", { name: "Pause" }).click();
    const slider = player().getByRole("slider", { name: "Place in the episode" });
    await slider.focus();
    await page.keyboard.press(" ");
    await eventually("the last frame", async () => (await place()) === "3 / 3");
    await player().getByRole("button", { name: "Play" }).waitFor();
    assert.equal(await slider.getAttribute("aria-valuetext"), "state 3 of 3");
  });

  test("a hostile picture runs no script, asks nobody and cannot leave its image", async () => {
    const away = "https://evil.example.org";
    const hostile = svg(
      "&lt;img src=x onerror=parent.document.title='owned'&gt;",
      [
        `<script>document.title='owned';parent.document.title='owned';fetch('${away}/script')</script>`,
        `<script href="${away}/file.js"/>`,
        `<image href="${away}/image.png" width="9" height="9" onerror="parent.document.title='owned'"/>`,
        `<foreignObject width="40" height="40"><iframe xmlns="http://www.w3.org/1999/xhtml" src="${away}/frame" onload="top.document.title='owned'"/></foreignObject>`,
        `<a href="javascript:document.title='owned'"><rect width="40" height="40" fill="#fff"/></a>`,
        `<animate attributeName="x" onbegin="parent.document.title='owned'" dur="1s"/>`,
        `<style>@import url("${away}/style.css"); rect { fill: url("${away}/fill.svg#a") }</style>`,
      ].join(""),
    );
    answer = () => threeFrames(() => ({ case: "svg", value: hostile }));
    await open(1);
    const picture = player().locator("img");
    await eventually("the picture", () =>
      look<boolean>(`document.querySelector(".player img")?.naturalWidth === 40`),
    );
    await picture.click();
    await page.keyboard.press("End");
    await page.waitForTimeout(300);
    assert.match(await page.title(), /^train\.1\.1\.1/);
    assert.match(page.url(), /train\.1\.1\.1$/);
    assert.ok(!asked.some((url) => url.startsWith(away)), asked.join("\n"));
    assert.equal(await picture.getAttribute("alt"), "<img src=x onerror=parent.document.title='owned'>");
    // Opened alone, as a browser's menu does, it has an origin of its own, from which no script reads the page.
    const source = (await picture.getAttribute("src")) ?? "";
    assert.match(source, /^data:image\/svg\+xml/);
    const markup =
      "document.querySelector('#episode').querySelectorAll('script, iframe, foreignObject, svg').length";
    assert.equal(await look<number>(markup), 0);
  });

  test("shows what is no picture by its text, and PNG files and texts as they are", async () => {
    answer = () => ({
      problem: "The last ones are left out.",
      frames: [
        { observation: "P_\n_G", picture: { case: "svg", value: "<svg not closed" } },
        { observation: "_P\n_G", turn: 0, action: "", picture: { case: "png", value: PNG } },
        { observation: "__\n_P", turn: 1, action: "<b>Down</b>", reward: 1 },
      ],
    });
    await open(2);
    await player().locator(".player-text").waitFor();
    assert.equal(await player().locator(".player-text").textContent(), "P_\n_G");
    await page.getByText("The last ones are left out.").waitFor();
    const next = player().getByRole("button", { name: "Step forward" });
    await next.click();
    await eventually("the file", () =>
      look<boolean>(`document.querySelector(".player img").naturalWidth === 1`),
    );
    assert.equal(await player().locator("img").getAttribute("alt"), "_P\n_G");
    assert.match(await player().locator(".player-cause").innerText(), /^after turn 1: no action$/);
    await next.click();
    assert.equal(await player().locator(".player-text").textContent(), "__\n_P");
    assert.match(await player().locator(".player-cause").innerText(), /: <b>Down<\/b>, reward 1$/);
  });

  test("plays the turns alone where there are no frames, and says why", async () => {
    answer = () => ({ problem: "The episode came to another state." });
    await open(3);
    await page.getByText("The episode came to another state.").waitFor();
    assert.equal(await player().locator(".player-screen").isHidden(), true);
    assert.equal(await place(), "1 / 2");
    await player().getByRole("button", { name: "Step forward" }).click();
    assert.match(await player().locator(".player-side").innerText(), /^turn 2\n/i);

    const before = asked.length;
    await open(4, true);
    assert.equal(await place(), "1 / 2");
    assert.equal(await page.locator(".player-notice").isHidden(), true);
    assert.ok(!asked.slice(before).some((url) => url.endsWith("/frames")));
  });

  test("the browser complained about nothing", () => {
    assert.deepEqual(complaints, []);
  });
});
