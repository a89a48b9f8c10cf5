/** Prints the kill matrix as the table in docs/reliability.md. */

import { MOMENT_NAMES, MOMENTS, QUICK_CASES, VICTIMS } from "./moments.ts";

/** The text of a cell: the case runs in `npm test`, or only in `npm run test:full`. */
const Mark = { quick: "**×**", full: "×" } as const;

/** One row per moment, in the order in which a run reaches them; one column per victim. */
export function matrixTable(): string {
  const quick = new Set(QUICK_CASES.map(([victim, moment]) => `${victim} ${moment}`));
  const rows = MOMENT_NAMES.map((moment) => [
    MOMENTS[moment].title,
    MOMENTS[moment].service,
    ...VICTIMS.map((victim) => (quick.has(`${victim} ${moment}`) ? Mark.quick : Mark.full)),
  ]);
  const header = ["moment", "stopped process", ...VICTIMS];
  return [header, header.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
