/** Reads what the page says of trained tokens, in a real browser. */

import { eventually } from "@hone/testing";
import { launchChromium } from "@hone/testing/chromium";
import type { TestStack } from "../stack.ts";

type Page = Pick<TestStack, "pageUrl" | "token">;

/** The rows of a token's card by name, with the sign of the colour that the token has. */
export type TokenCard = Readonly<Record<string, string>> & { readonly sign: string };

/** Points at each sampled token and reads its card. */
const READ_CARDS = `[...document.querySelectorAll('.tokens .token[data-mask="1"]')].map((cell) => {
  cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
  const names = [...document.querySelectorAll(".token-card dt")];
  const rows = names.map((name) => [name.textContent, name.nextElementSibling.textContent]);
  return { ...Object.fromEntries(rows), sign: cell.dataset.sign };
})`;

const READ_TABLES = `[...document.querySelectorAll("#step-gradient table")].map((table) =>
  [...table.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent)))`;

/**
 * @param chromium path of the browser.
 * @returns the cards of all sampled tokens in the page's order, once the page has read the record of trained tokens.
 */
export function readTokenCards(stack: Page, chromium: string, place: string): Promise<TokenCard[]> {
  return readFromPage<TokenCard[]>(stack, chromium, place, READ_CARDS, (cards) =>
    cards.some((card) => card.ratio !== undefined),
  );
}

/** @returns the cells of the tables of a step's gradient by table and row: the rollouts and the tokens of each policy. */
export function readGradientTables(stack: Page, chromium: string, place: string): Promise<string[][][]> {
  return readFromPage<string[][][]>(stack, chromium, place, READ_TABLES, (tables) => tables.length > 0);
}

async function readFromPage<Found>(
  stack: Page,
  chromium: string,
  place: string,
  expression: string,
  isThere: (found: Found) => boolean,
): Promise<Found> {
  const browser = await launchChromium(chromium);
  try {
    const page = await browser.newPage();
    await page.goto(`${stack.pageUrl}/?token=${stack.token}`);
    await page.goto(`${stack.pageUrl}${place}`);
    let found: Found | undefined;
    await eventually(`what is wanted on ${place}`, async () => {
      found = (await page.evaluate(expression)) as Found;
      return isThere(found);
    });
    return found!;
  } finally {
    await browser.close();
  }
}
