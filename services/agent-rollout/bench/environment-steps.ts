/**
 * Measures how many steps a second one process makes in the environments that come with Hone, with many of them open at once as
 * in agent-rollout. Actions are legal ones at random; no model and no agent takes part.
 *
 *     node services/agent-rollout/bench/environment-steps.ts [--open 10000] [--steps 200000]
 */

import { parseArgs } from "node:util";
import { type Environment, environmentNames, environmentOf } from "@hone/agents";
import { Random } from "@hone/core";
import "../src/domain/built-ins.ts";

const { values } = parseArgs({
  options: { open: { type: "string", default: "10000" }, steps: { type: "string", default: "200000" } },
});
const [numOpen, numSteps] = [Number(values.open), Number(values.steps)];

/** Those that play by themselves; the others ask a server. */
const NAMES = environmentNames().filter((name) => name !== "environment_service");

for (const name of NAMES) {
  const definition = environmentOf(name)!;
  const config = definition.configSchema.parse({});
  const random = new Random(1);
  let seed = 0;
  const open: Environment[] = [];
  for (let i = 0; i < numOpen; i++) open.push(definition.create(config));
  const beganReset = performance.now();
  for (const environment of open) await environment.reset(seed++);
  const resetMs = performance.now() - beganReset;
  const began = performance.now();
  let episodes = 0;
  for (let made = 0; made < numSteps; made++) {
    const environment = open[made % numOpen]!;
    const { terminated, truncated } = await environment.step(
      random.pick(environment.legalActions?.() ?? [""]),
    );
    if (!terminated && !truncated) continue;
    episodes++;
    await environment.reset(seed++);
  }
  const seconds = (performance.now() - began) / 1_000;
  console.log(
    `${name}: ${Math.round(numSteps / seconds).toLocaleString("en")} steps/s with ${numOpen.toLocaleString("en")} open ` +
      `(${episodes.toLocaleString("en")} episodes ended and began anew), ${(resetMs / numOpen).toFixed(3)} ms a first reset, ` +
      `${Math.round(process.memoryUsage().rss / 2 ** 20)} MiB`,
  );
}
