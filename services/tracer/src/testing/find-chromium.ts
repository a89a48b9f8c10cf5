/** The browser that tests of the page drive: Debian's chromium, or the one that HONE_CHROMIUM names. */

import { access, constants } from "node:fs/promises";
import { type Browser, chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** It runs as root in containers, without a screen and without asking anybody for anything. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--no-first-run",
  "--disable-sync",
];

/**
 * Path of the browser; undefined when there is none.
 * @param wanted what HONE_CHROMIUM says; it is looked for first.
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
