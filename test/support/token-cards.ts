/** Reads the cards of trained tokens on the page of a rollout, in a real browser. */

import { eventually } from "@hone/testing";
import { launchChromium } from "@hone/testing/chromium";
import type { TestStack } from "./stack.ts";

/** The rows of a token's card by name, with the sign of the colour that the token has. */
export type TokenCard = Readonly<Record<string, string>> & { readonly sign: string };

/** Points at each sampled token and reads its card. */
const READ_CARDS = `[...document.querySelectorAll('.tokens .token[data-mask="1"]')].map((cell) => {
  cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
  const names = [...document.querySelectorAll(".token-card dt")];
  const rows = names.map((name) => [name.textContent, name.nextElementSibling.textContent]);
  return { ...Object.fromEntries(rows), sign: cell.dataset.sign };
})`;

/**
 * @param chromium path of the browser.
 * @returns the cards of all sampled tokens in the page's order, once the page has read the record of trained tokens.
 */
export async function readTokenCards(
  stack: Pick<TestStack, "pageUrl" | "token">,
  chromium: string,
  place: string,
): Promise<TokenCard[]> {
  const browser = await launchChromium(chromium);
  try {
    const page = await browser.newPage();
    await page.goto(`${stack.pageUrl}/?token=${stack.token}`);
    await page.goto(`${stack.pageUrl}${place}`);
    let cards: TokenCard[] = [];
    await eventually("the cards of trained tokens", async () => {
      cards = (await page.evaluate(READ_CARDS)) as TokenCard[];
      return cards.some((card) => card.ratio !== undefined);
    });
    return cards;
  } finally {
    await browser.close();
  }
}
