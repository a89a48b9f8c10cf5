/**
 * `npm run soak`: checks that the engines of gateway and trainer do not grow while they work.
 *
 *   npm run soak -- [--shape 135m|tiny] [--generations 2000] [--steps 100] [--swaps 20] [--max-batch 32] [--max-prompt 128]
 *                   [--max-new 64] [--step-samples 4] [--interval-ms 1000] [--json FILE]
 *
 * Runs batches of changing sizes, conversations, training steps on the samples, and policy versions that one engine writes and
 * the other loads, with random start weights. Every minute it prints its progress, and at the end PASS, or FAIL with the
 * processes that grew after the first tenth of the time (growth.ts). The exit code is 0 only for PASS.
 */

import { GROWTH_LIMITS, mebibytes } from "./growth.ts";
import { holdSitting } from "./report/sitting.ts";
import { type SoakSample, soakEngines } from "./soak/soak-engines.ts";
import { parseSoakOptions } from "./soak/soak-options.ts";
import { judgeSoak } from "./soak/soak-verdict.ts";

const TELL_SECONDS = 60;

await holdSitting(
  () => parseSoakOptions(process.argv.slice(2)),
  async (options) => {
    const { generations, steps, swaps } = options;
    console.log(`${generations} generations, ${steps} training steps, ${swaps} policy swaps`);
    let toldAt = 0;
    const samples = await soakEngines(options, (sample) => {
      if (sample.seconds - toldAt < TELL_SECONDS) return;
      toldAt = sample.seconds;
      tell(sample);
    });
    const last = samples.at(-1);
    if (last !== undefined) tell(last);
    const verdict = judgeSoak(samples);
    for (const { name, peakBytes, meanBytes, growthBytes } of verdict.processes) {
      console.log(
        `${name.padEnd(10)} peak ${mebibytes(peakBytes).padStart(9)}  mean ${mebibytes(meanBytes).padStart(9)}  ` +
          `grew ${mebibytes(growthBytes).padStart(8)}`,
      );
    }
    const { problems } = verdict;
    console.log(problems.length === 0 ? "\nPASS" : `\nFAIL\n${problems.join("\n")}`);
    if (problems.length > 0) process.exitCode = 1;
    return { options, limits: GROWTH_LIMITS, verdict, samples };
  },
);

function tell({ seconds, generations, steps, swaps, processes }: SoakSample): void {
  const memory = Object.entries(processes).map(([name, bytes]) => `${name} ${mebibytes(bytes)}`);
  console.log(
    `${seconds.toFixed(0)} s: ${generations} generations, ${steps} steps, ${swaps} swaps; ${memory.join(", ")}`,
  );
}
