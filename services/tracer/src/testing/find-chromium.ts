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

export function launchChromium(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: FLAGS });
}
