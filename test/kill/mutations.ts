/**
 * Faults that the kill matrix must detect. Each breaks one promise with a few changed lines, which only shows when a process
 * is killed. This file imports no code of the product, which would then be loaded before it can be changed.
 */

import path from "node:path";
import { pathToFileURL } from "node:url";
import type { MomentName, Victim } from "./moments.ts";

export interface Mutation {
  /** Path in the repository. */
  readonly file: string;
  /** Text that is in the file exactly once. */
  readonly text: string;
  readonly replacement: string;
  /** The case that must fail, and what it must complain about. */
  readonly victim: Victim;
  readonly moment: MomentName;
  readonly complaint: RegExp;
}

const CONSUME_WORK = "libs/messaging/src/work/consume-work.ts";
const BEGIN = "const where = { subject, sequence };";
const COMMIT = 'await reporter.untilAvailable({ text: "the database (commit)"';

export const MUTATIONS = {
  "job acknowledged before its episode is stored": {
    file: CONSUME_WORK,
    text: BEGIN,
    replacement: `${BEGIN} if (options.stream === "JOBS") entry.delivery.ack();`,
    victim: "agent-rollout",
    moment: "rollouts-half-done",
    complaint: /Waited \d+ ms for the end of[\s\S]*rollouts of step 2/,
  },
  "episode acknowledged before its score is stored": {
    file: CONSUME_WORK,
    text: BEGIN,
    replacement: `${BEGIN} if (options.stream === "EPISODES") entry.delivery.ack();`,
    victim: "judge",
    moment: "episodes-half-judged",
    complaint: /Waited \d+ ms for the end of[\s\S]*rollouts of step 2/,
  },
  "episodes trained twice": {
    file: "services/trainer/src/domain/run/run-loop.ts",
    text: `await removeOldStates(context, {
    committed: run.stateFolder,
    recovery: needsOptimizer ? recovery?.folder : undefined,
    oldestVersion: version - 1,
    epoch: run.epoch,
  });`,
    // Continues from the newest state on disk, even if it is not committed; its step is then trained once more.
    replacement: `const { readdirSync, readFileSync } = await import("node:fs");
      const { createHash } = await import("node:crypto");
      const states = run.stateFolder.replace(/[^/]+$/, "");
      const names = readdirSync(context.folders.absolute(states)).filter((name) => !name.startsWith("."));
      const stateFolder = states + names.sort().at(-1);
      const weights = readFileSync(context.folders.absolute(stateFolder) + "/model.safetensors");
      Object.assign(run, { stateFolder, stateDigest: createHash("sha256").update(weights).digest("hex"), stateFiles: {} });`,
    victim: "trainer",
    moment: "state-renamed",
    complaint: /the weights of version 2 differ/,
  },
  "version published before its commit": {
    file: "services/trainer/src/domain/step/commit.ts",
    text: COMMIT,
    replacement: `await reporter.publish({ version, location: stateFolder, digest, oldestVersion: version }); ${COMMIT}`,
    victim: "trainer",
    moment: "state-renamed",
    complaint: /RUN_STATE shows version 2, but the last committed version is 1/,
  },
} as const satisfies Readonly<Record<string, Mutation>>;

export type MutationName = keyof typeof MUTATIONS;
export const MUTATION_NAMES = Object.keys(MUTATIONS) as MutationName[];

/** The mutation of `npm test`; the others take longer to be detected. */
export const QUICK_MUTATION: MutationName = "version published before its commit";

const PRELOAD = path.join(import.meta.dirname, "mutation-preload.ts");

/** Environment variables for the processes with the fault. */
export function mutationEnvironment(name: MutationName): Record<string, string> {
  return { NODE_OPTIONS: `--import ${pathToFileURL(PRELOAD)}`, HONE_TEST_MUTATION: name };
}

/** Inserts the fault into a module's text. @throws when the text that it replaces is not there exactly once. */
export function mutate({ file, text, replacement }: Mutation, source: string): string {
  const parts = source.split(text);
  if (parts.length !== 2) {
    throw new Error(
      `${file} has the text of the fault ${parts.length - 1} times; it must have it exactly once`,
    );
  }
  return parts.join(replacement);
}
