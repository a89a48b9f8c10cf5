/** Tests that every view can be used by the keyboard alone and on a narrow screen, and that hostile texts do nothing in it. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { eventually } from "@hone/testing";
import { chromiumOrSkip } from "@hone/testing/chromium";
import type { Page } from "playwright-core";
import { CHAT, HOSTILE, OWNED, RUN, startViews, type ViewsStack, WAITING } from "../testing/views-stack.ts";

const { chromium, skip } = await chromiumOrSkip("the views are");

describe("the page for everybody who uses it", { timeout: 240_000, skip }, () => {
  let views: ViewsStack;
  let page: Page;

  before(async () => {
    views = await startViews(chromium ?? "");
    page = views.page;
  });
  after(() => views?.[Symbol.asyncDispose]());

  const open = (place: string) => views.open(place);
  const look = <Value>(expression: string, of?: Page) => views.look<Value>(expression, of);

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
      const narrow = await views.context.newPage();
      await narrow.setViewportSize({ width: 390, height: 844 });
      await narrow.emulateMedia({ colorScheme });
      for (const place of places) {
        await narrow.goto(`${views.url}${place}`);
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
    assert.deepEqual(views.complaints, []);
  });
});
