/**
 * `npm run bench`: measures Hone's throughput, and compares it with the machine's limits and with peers.
 *
 *   npm run bench -- [--only limits,bus,engines,pipeline,start,async] [--rounds 5] [--quick] [--json FILE]
 *
 * Prints a table and writes it as JSON, by default below `.hone/`. Peers are looked for in the folder that PEERS names (default
 * ~/.cache/hone-peers). Only figures of one sitting can be compared, and only if nothing else used the machine, which the bench
 * checks.
 */

import { parseOptions } from "./options.ts";
import { formatSection, type Report, type Section } from "./report/report.ts";
import { holdSitting, type SittingReport } from "./report/sitting.ts";
import { summarise } from "./report/summarise.ts";
import type { BenchSettings, Measure } from "./section.ts";
import { measureAsynchrony } from "./sections/asynchrony.ts";
import { measureBus } from "./sections/bus.ts";
import { measureEngines } from "./sections/engines.ts";
import { measureLimits } from "./sections/limits.ts";
import { measurePipeline } from "./sections/pipeline.ts";
import { measureStart } from "./sections/start.ts";

const SECTIONS: Readonly<Record<string, Measure>> = {
  limits: measureLimits,
  bus: measureBus,
  engines: measureEngines,
  pipeline: measurePipeline,
  start: measureStart,
  async: measureAsynchrony,
};

const readOptions = () => parseOptions(process.argv.slice(2), Object.keys(SECTIONS));
await holdSitting(readOptions, async (options): Promise<Omit<Report, keyof SittingReport>> => {
  const settings: BenchSettings = { ...options, say: (line) => console.error(`  measuring ${line}`) };
  const sections: Section[] = [];
  for (const name of options.only) {
    const section = await SECTIONS[name]!(settings, limitsOf(sections));
    sections.push(section);
    console.log(`\n${formatSection(section).join("\n")}`);
  }
  return { isQuick: options.isQuick, sections };
});

/** Medians of the limits that were measured. */
function limitsOf(sections: readonly Section[]): Readonly<Record<string, number>> {
  const rows = sections.find(({ name }) => name === "limits")?.rows ?? [];
  return Object.fromEntries(
    rows.flatMap((row) =>
      row.kind === "measured" ? [[row.name, summarise(row.values).median] as const] : [],
    ),
  );
}
