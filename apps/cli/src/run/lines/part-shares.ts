/** The success of each part of a mix, as steps and evaluations report it (`part/<name>/success`). */

import { share } from "../../format.ts";

/** More would make a line that nobody reads; the page shows all. */
const MAX_SHOWN = 6;
const PREFIX = "part/";
const FIGURES = ["/success", "/reward/mean"] as const;

/** @returns the success of each part in the order of their names, or its reward where its agent reports no success. */
export function partShares(metrics: Readonly<Record<string, number>>): Map<string, number> {
  const shares = new Map<string, number>();
  for (const figure of FIGURES) {
    for (const [key, value] of Object.entries(metrics)) {
      if (!key.startsWith(PREFIX) || !key.endsWith(figure)) continue;
      const name = key.slice(PREFIX.length, -figure.length);
      if (!shares.has(name)) shares.set(name, value);
    }
  }
  return new Map([...shares].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** ` (lake 0.60, shop 0.12)`; empty where the run's tasks are of one kind. */
export function partsText(metrics: Readonly<Record<string, number>>): string {
  const shares = [...partShares(metrics)];
  if (shares.length === 0) return "";
  const shown = shares.slice(0, MAX_SHOWN).map(([name, value]) => `${name} ${share(value)}`);
  const rest = shares.length > MAX_SHOWN ? [`${shares.length - MAX_SHOWN} more`] : [];
  return ` (${[...shown, ...rest].join(", ")})`;
}
