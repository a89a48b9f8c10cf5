/** Finds the browser for tests of the page: Debian's chromium, or the one that HONE_CHROMIUM names. */

import { access, constants } from "node:fs/promises";
import { type Browser, chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** For containers, where it runs as root, without a screen and without network requests of its own. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--no-first-run",
  "--disable-sync",
];

/**
 * @param wanted the path in HONE_CHROMIUM, which is tried first.
 * @returns the path of the browser, or undefined when there is none.
 */
export async function findChromium(wanted: string | undefined): Promise<string | undefined> {
  for (const place of [wanted, ...PLACES]) {
    if (place === undefined || place === "") continue;
    const isThere = await access(place, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return place;
  }
  return undefined;
}

/**
 * The browser, and what the option `skip` of a test is without one, which is also printed.
 * @param what is not tested then, such as "the page is".
 */
export async function chromiumOrSkip(
  what: string,
): Promise<{ readonly chromium: string | undefined; readonly skip: string | false }> {
  const found = await findChromium(process.env.HONE_CHROMIUM);
  if (found !== undefined) return { chromium: found, skip: false };
  const skip = "no chromium: install it (apt-get install chromium) or name it by HONE_CHROMIUM";
  console.warn(`SKIPPED: ${what} not tested in a browser, as there is ${skip}`);
  return { chromium: undefined, skip };
}

export function launchChromium(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: FLAGS });
}
