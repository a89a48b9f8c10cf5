/** Tests the page in a real browser, with a tracer that has stored data. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { publishStored, subjects } from "@hone/messaging";
import { ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import type { RunningService } from "@hone/service-kit";
import { eventually } from "@hone/testing";
import { chromiumOrSkip, launchChromium } from "@hone/testing/chromium";
import type { Browser, Page } from "playwright-core";
import { sampleEpisode } from "../testing/sample-episode.ts";
import { publishEvent, publishSampleRun, sampleMetrics } from "../testing/sample-run.ts";
import { startStack, type TracerStack } from "../testing/stack.ts";

const { chromium, skip } = await chromiumOrSkip("the page is");

const RUN = "/runs/frozen-lake-1";
/** Address of Jaeger's UI; the test answers there, with the links that Jaeger would make. */
const JAEGER = "https://jaeger.example.org";
const JAEGER_CONFIG = path.join(import.meta.dirname, "../../../../helm/hone/templates/jaeger/_config.tpl");
interface Extent {
  readonly begin: { readonly x: number; readonly y: number };
  readonly end: { readonly x: number; readonly y: number };
}

const EVIL = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;

describe("the page in a browser", { timeout: 120_000, skip }, () => {
  let stack: TracerStack;
  let tracer: RunningService;
  let browser: Browser;
  let page: Page;
  let complaints: string[];

  before(async () => {
    stack = await startStack(Date.now() - 100_000);
    tracer = await stack.startTracer({ HONE_JAEGER_URL: JAEGER });
    browser = await launchChromium(chromium ?? "");
    page = await browser.newPage({ viewport: { width: 1_280, height: 900 } });
    complaints = [];
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("request", (request) => {
      const isOwn = [tracer.http.url, JAEGER].some((place) => request.url().startsWith(place));
      if (!isOwn) complaints.push(`asks ${request.url()}`);
    });
  });
  after(async () => {
    await browser?.close();
    await tracer?.stop();
    await stack?.[Symbol.asyncDispose]();
  });

  const rows = (count: number) =>
    eventually(`${count} rows`, async () => (await page.locator(".rollouts tbody tr").count()) === count);
  /** Evaluates an expression in the page. It is a text, as the compiler does not know the DOM here. */
  const look = async <T>(expression: string) => (await page.evaluate(expression)) as T;
  const open = (place: string) => page.goto(`${tracer.http.url}${place}`);
  /** Publishes a scored episode of the run, and waits until it is stored. */
  const store = async (scored: ReturnType<typeof sampleEpisode>) => {
    await publishStored(
      stack.bus,
      subjects.rolloutScored(stack.run.runId),
      ScoredEpisodeSchema,
      create(ScoredEpisodeSchema, scored),
    );
    await stack.stored();
  };

  test("says what to do while there is no run, and shows the first run without a reload", async () => {
    await open("/");
    await page.getByText("No runs yet").waitFor();
    await page.getByRole("status").filter({ hasText: "live" }).waitFor();
    await publishSampleRun(stack.bus, stack.run, tracer.http.url);
    const row = page.locator(".run-row");
    await row.waitFor();
    await row.getByText("40 of 60 steps").waitFor();
    assert.match(await row.innerText(), /Waiting for rollouts of step 41: 160 of 256 are there, for \d/);
  });

  test("draws the learning curve and extends it as steps complete", async () => {
    await stack.stored();
    await page.locator(".run-row").click();
    const chart = page.locator("#learning-curve .chart");
    await eventually("the lines", async () => (await page.locator("#learning-curve path.line").count()) >= 4);
    // Both ends of the drawn line: it begins at the left of the plot and ends at its right, higher up.
    const extent = () =>
      look<Extent>(`{
        const line = document.querySelector("#learning-curve path.line:not(.line-raw).curve-1");
        const at = (length) => { const { x, y } = line.getPointAtLength(length); return { x, y }; };
        ({ begin: at(0), end: at(line.getTotalLength()) });
      }`);
    const before = await extent();
    assert.ok(before.end.x - before.begin.x > 700, JSON.stringify(before));
    assert.ok(before.begin.y - before.end.y > 80, JSON.stringify(before));
    assert.match((await chart.getAttribute("aria-label")) ?? "", /success in training: .* at step 40/);
    await publishEvent(stack.bus, stack.run.runId, Date.now(), {
      case: "stepCompleted",
      value: { step: 41, totalSteps: 60, version: 41, metrics: sampleMetrics(41) },
    });
    await eventually("the curve to grow", async () =>
      ((await chart.getAttribute("aria-label")) ?? "").includes("at step 41"),
    );
  });

  test("draws the learning curve of a run of only two steps", async () => {
    const runId = "short-2";
    for (const step of [1, 2]) {
      await publishEvent(stack.bus, runId, Date.now(), {
        case: "stepCompleted",
        value: { step, totalSteps: 2, version: step, metrics: sampleMetrics(step) },
      });
    }
    await stack.stored();
    await open(`/runs/${runId}`);
    await eventually(
      "the lines",
      async () => (await page.locator("#learning-curve path.line").count()) === 2,
    );
    await page.getByText("No rollouts yet").waitFor();
    await open(RUN);
    await page.locator("#learning-curve path.line-raw").first().waitFor();
  });

  test("shows the values at a step that is chosen by the keyboard", async () => {
    const chart = page.locator("#learning-curve .chart");
    await chart.focus();
    await page.keyboard.press("Home");
    const card = chart.locator(".chart-card");
    await card.waitFor();
    assert.match(await card.innerText(), /step 0\s+held out, sampled\s+0\.21/);
    await page.keyboard.press("ArrowRight");
    assert.match(await card.innerText(), /step 1\s+success in training/);
    await page.keyboard.press("Escape");
    assert.equal(await card.isHidden(), true);
  });

  test("shows a small chart for every metric that has a value", async () => {
    const names = await page.locator(".multiple-name").allInnerTexts();
    for (const name of ["entropy", "loss", "clip fraction", "time rollout", "outcome completed"]) {
      assert.ok(names.includes(name), `${name} is missing in ${names.join(", ")}`);
    }
    assert.ok(!names.includes("unknown"), "a figure without any value is not shown");
  });

  test("shows who worked when in a step, the age of its tokens, and what was not trained", async () => {
    await eventually("the spans to be stored", async () => {
      const answer = await fetch(`${tracer.http.url}/api${RUN}/steps/40/timeline`);
      return ((await answer.json()) as { rollouts: { drawn: number } }).rollouts.drawn === 64;
    });
    const step = page.locator("#step");
    // Step 41 has no rollouts; the one before it has all of theirs.
    await step.locator("input[name=step]").fill("40");
    await step.locator("input[name=step]").press("Enter");
    await eventually("the lanes", async () => (await step.locator(".lane-area").count()) === 4);
    assert.deepEqual(await step.locator(".lane-name").allInnerTexts(), [
      "Trainer",
      "Engine inference-gateway-0",
      "Agents",
      "Tools and environments",
      "Judge",
    ]);
    assert.equal(await step.locator(".lane-phase").count(), 5);
    assert.match(await step.locator(".lane-figure").nth(1).innerText(), /^idle \d\d %, up to \d+ at once$/);
    const ages = page.locator("#token-ages");
    assert.match(await ages.innerText(), /0 versions\s+3,300\s+61 %\s+1 version\s+2,100\s+39 %/);
    assert.match(
      await page.locator("#not-trained").innerText(),
      /groups given up: their tokens had grown too old\s+0\s+26/,
    );
    assert.ok(!(await page.locator(".multiple-name").allInnerTexts()).includes("staleness 0"));
    await page.getByRole("button", { name: "Step before" }).click();
    await eventually("the step before", async () => /0 versions\s+3,340/.test(await ages.innerText()));
    await page.getByText("0 jobs wait for agent-rollout, which works on 0").waitFor();
    await step.getByRole("button", { name: "Newest" }).click();
    await eventually(
      "the newest step",
      async () => (await step.locator("input[name=step]").inputValue()) === "41",
    );
  });

  test("filters rollouts, keeps the filter in the address, and opens a rollout", async () => {
    await page.locator("select[name=outcome]").selectOption("infra_failed");
    await rows(2);
    assert.match(page.url(), /\?outcome=infra_failed$/);
    await page.reload();
    await rows(2);
    await page.getByRole("button", { name: "Clear" }).click();
    await rows(25);
    assert.equal(await page.locator("select[name=outcome]").inputValue(), "");
    await page.locator(".slot-link").first().click();
    await page.locator(".turn").first().waitFor();
    assert.match(page.url(), /\/rollouts\/train\.40\.3\.7$/);
  });

  test("colours tokens by mask and advantage, and shows details of the token under the pointer", async () => {
    const slot = "train.40.1.2";
    await eventually("the advantage to be stored", async () => {
      const answer = await fetch(`${tracer.http.url}/api${RUN}/rollouts/${slot}`);
      return ((await answer.json()) as { advantage: number | null }).advantage !== null;
    });
    await open(`${RUN}/rollouts/${slot}`);
    const turn = page.locator(".turn").first();
    const sampled = turn.locator('.token[data-mask="1"]');
    assert.equal(await sampled.first().innerText(), "<answer>");
    const color = (mask: 0 | 1) =>
      look<string>(`getComputedStyle(document.querySelector('.token[data-mask="${mask}"]')).backgroundColor`);
    const pushed = await color(1);
    assert.notEqual(pushed, await color(0));
    assert.equal(await sampled.first().getAttribute("data-sign"), "down");
    await sampled.nth(1).hover();
    const card = page.locator(".token-card");
    assert.match(
      await card.innerText(),
      /logprob\s+−\d.*probability\s+\d+\.\d+ %.*advantage\s+−1\.291.*policy version\s+39/s,
    );
    await page.getByText("Mask", { exact: true }).click();
    await eventually("the colour of the mask", async () => (await color(1)) !== pushed);
  });

  test("uses a turn's own advantage for its tokens where turns have advantages of their own", async () => {
    await open(`${RUN}/rollouts/train.40.2.0`);
    for (const [index, [sign, shown]] of (
      [
        ["up", /advantage\s+\+1\.25/],
        ["down", /advantage\s+−0\.75/],
      ] as const
    ).entries()) {
      const sampled = page.locator(`#turn-${index} .token[data-mask="1"]`).first();
      assert.equal(await sampled.getAttribute("data-sign"), sign);
      await sampled.hover();
      assert.match(await page.locator(".token-card").innerText(), shown);
    }
    await open(`${RUN}/rollouts/train.40.1.2`);
  });

  test("moves through tokens by the arrow keys", async () => {
    // The tokens are the first stop of the tab key after the choice of colours.
    await page.getByText("Mask", { exact: true }).click();
    await page.keyboard.press("Tab");
    assert.ok(await look<boolean>(`document.activeElement === document.querySelector(".tokens")`));
    const card = page.locator(".token-card");
    assert.match(await card.innerText(), /"<answer>"/);
    await page.keyboard.press("ArrowRight");
    assert.match(await card.innerText(), /"(Left|Down|Right|Up)"/);
    await page.keyboard.press("Home");
    assert.match(await card.innerText(), /"<\|user\|>".*mask\s+0, context/s);
    await page.keyboard.press("]");
    await page.waitForURL(/train\.40\.1\.3$/);
  });

  test("links to the trace of the rollout", async () => {
    await eventually("its spans to be stored", async () => {
      const answer = await fetch(`${tracer.http.url}/api${RUN}/rollouts/train.40.1.3/trace`);
      return answer.ok;
    });
    await page.getByRole("link", { name: "Trace" }).click();
    await page.locator(".span-row").first().waitFor();
    assert.equal(await page.locator(".span-name").first().innerText(), "rollout");
    await page.getByRole("button", { name: /^train/ }).click();
    assert.match(await page.locator(".span-panel").innerText(), /hone\.advantage/);
  });

  test("shows in which sample a turn is, and why a session's call began a new sample", async () => {
    const slot = { split: "eval", step: 40, task: 1, index: 0 } as const;
    const scored = sampleEpisode(stack.run.runId, slot, stack.run.tokenizer);
    assert.ok(scored.episode !== undefined);
    const { samples, turns } = scored.episode;
    // An answer, another one after the agent went back to an earlier point, and a call that was given up.
    samples.splice(2);
    turns.splice(2);
    turns[0]!.infoJson = JSON.stringify({ role: "solver" });
    turns[1]!.infoJson = JSON.stringify({ role: "solver", drift: "branch" });
    const given = { ...turns[1]!, index: 2, sample: 2, sampledBegin: 0, sampledEnd: 0, infoJson: "{}" };
    turns.push({ ...given, finishReason: "aborted" });
    await store(scored);
    await open(`${RUN}/rollouts/eval.40.1.0`);
    await page.locator("#turn-2").waitFor();
    const side = (turn: number) => page.locator(`#turn-${turn} .turn-side`);
    assert.match(await side(0).innerText(), /begins sample 0\s+role\s+solver/);
    assert.match(await side(1).innerText(), /begins sample 1\s+drift: branch\s+role\s+solver/);
    assert.match(await side(2).innerText(), /in no sample/);
    assert.match(
      (await side(1).getByText("drift: branch").getAttribute("title")) ?? "",
      /continues from an earlier point/,
    );
    assert.match(await page.locator(".tiles").innerText(), /in 2 samples/);
    await open(`${RUN}/rollouts/train.40.1.2`);
    await page.locator(".turn").first().waitFor();
    assert.equal(await page.getByText(/drift/).count(), 0);
  });

  test("links to the same trace in Jaeger, whose links lead back to the rollout, the run and the trace", async () => {
    const slot = "train.40.1.3";
    const answer = await fetch(`${tracer.http.url}/api${RUN}/rollouts/${slot}/trace`);
    const { traceId, spans } = (await answer.json()) as {
      traceId: string;
      spans: { attributes: Record<string, string> }[];
    };
    const patterns = linkPatterns(await readFile(JAEGER_CONFIG, "utf8"));
    assert.equal(patterns.length, 4);
    const links = patterns.map((pattern) =>
      linkOf(pattern, tracer.http.url, { traceID: traceId, ...spans[0]?.attributes }),
    );
    const body = links
      .map((href, index) => `<p><a id="link-${index}" href="${href}">${href}</a></p>`)
      .join("");
    await page.route(`${JAEGER}/**`, (route) => route.fulfill({ contentType: "text/html", body }));
    const leads = [".turn", ".turn", "#learning-curve", ".span-row"];
    for (const [index, shown] of leads.entries()) {
      await open(`${RUN}/rollouts/${slot}/trace`);
      await page.getByRole("link", { name: "In Jaeger" }).click();
      await page.waitForURL(`${JAEGER}/trace/${traceId}`);
      await page.locator(`#link-${index}`).click();
      await page.locator(shown).first().waitFor();
    }
    assert.ok(page.url().endsWith(`/traces/${traceId}`), page.url());
    assert.equal(await page.locator(".span-name").first().innerText(), "rollout");
  });

  test("shows the output of models as text and never as markup", async () => {
    const slot = { split: "eval", step: 40, task: 0, index: 0 } as const;
    const scored = sampleEpisode(stack.run.runId, slot, stack.run.tokenizer);
    const turn = scored.episode?.turns[0];
    assert.ok(turn !== undefined && scored.episode !== undefined);
    turn.responseText = EVIL;
    turn.infoJson = JSON.stringify({ action: EVIL, [EVIL]: EVIL });
    scored.episode.reason = EVIL;
    scored.episode.failedAttempts = [EVIL];
    scored.episode.metadataJson = JSON.stringify({ answer: EVIL });
    if (scored.episode.task !== undefined) scored.episode.task.id = EVIL;
    await store(scored);
    await open(`${RUN}/rollouts/eval.40.0.0`);
    await page.locator(".turn").first().waitFor();
    assert.match(await page.locator("#view").innerText(), /<img src=x onerror/);
    assert.equal(await page.locator("#view img, #view script").count(), 0);
    assert.equal(await page.title(), "eval.40.0.0 · Hone");
  });

  test("forbids by its policy everything that is not from its own origin", async () => {
    const answer = await fetch(tracer.http.url);
    const policy = answer.headers.get("content-security-policy") ?? "";
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
    // Even a script that got into the page would not run.
    await page.evaluate(`{
      const script = document.createElement("script");
      script.textContent = "document.title = 'owned'";
      document.body.append(script);
    }`);
    assert.notEqual(await page.title(), "owned");
    assert.ok(complaints.some((complaint) => /Content Security Policy/.test(complaint)));
    complaints = complaints.filter((complaint) => !/Content Security Policy/.test(complaint));
  });

  test("keeps the chosen colours after a reload, and says that a run is not stored", async () => {
    await page.getByRole("button", { name: "Colours: system" }).click();
    await page.getByRole("button", { name: "Colours: light" }).click();
    await page.reload();
    assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
    assert.deepEqual(complaints, []);
    await open("/runs/other-7");
    await page.getByText("run other-7 cannot be shown: nothing is stored under this name").waitFor();
  });
});

/** The addresses of the link patterns in the chart's template. */
function linkPatterns(template: string): string[] {
  return [...template.matchAll(/"url": "([^"]+)"/g)].map(([, url = ""]) => url);
}

/** Makes a link as Jaeger does: `#{name}` is a value of the span, of one above it, or of the trace. */
function linkOf(pattern: string, page: string, values: Readonly<Record<string, string>>): string {
  return pattern
    .replace("{{ $page }}", page)
    .replace(/#\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? assert.fail(name)));
}
