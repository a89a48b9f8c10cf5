/** The bench's flags. */

import { homedir } from "node:os";
import path from "node:path";
import { InvalidInputError, parseScriptArguments } from "@hone/core";
import { REPOSITORY } from "./repository.ts";

/** Folder of the peers' environments. */
export const PEERS_VARIABLE = "PEERS";

export interface BenchOptions {
  /** Sections to measure, in the order in which they run. */
  readonly only: readonly string[];
  readonly rounds: number;
  readonly isQuick: boolean;
  /** Where the JSON goes. */
  readonly jsonFile: string;
  readonly peersFolder: string;
}

const QUICK_ROUNDS = 1;
const MAX_ROUNDS = 100;

/** What a bench takes where no flag says otherwise. */
export interface BenchDefaults {
  /** As it is called: `npm run bench`. */
  readonly command: string;
  readonly rounds: number;
  /** Name of the JSON file, in the state folder. */
  readonly jsonName: string;
}

const DEFAULTS: BenchDefaults = { command: "npm run bench", rounds: 5, jsonName: "bench.json" };

/**
 * @param sections names that `--only` may take.
 * @throws {InvalidInputError} for anything else than these flags and values, and for --help.
 */
export function parseOptions(
  args: readonly string[],
  sections: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
  defaults: BenchDefaults = DEFAULTS,
): BenchOptions {
  const { values } = parseScriptArguments(args, {
    usage: usageOf(sections, defaults),
    options: {
      only: { type: "string", multiple: true, default: [] },
      rounds: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "string" },
    },
  });
  const only = values.only.flatMap((names) => names.split(",")).filter(Boolean);
  for (const name of only) {
    if (!sections.includes(name)) throw invalid("--only", `one of ${sections.join(", ")}`, name);
  }
  const rounds = Number(values.rounds ?? (values.quick ? QUICK_ROUNDS : defaults.rounds));
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > MAX_ROUNDS) {
    throw invalid("--rounds", `a whole number from 1 to ${MAX_ROUNDS}`, String(values.rounds));
  }
  // npm runs scripts in the repository and names the folder where the user stands.
  const here = env.INIT_CWD ?? process.cwd();
  return {
    only: sections.filter((name) => only.length === 0 || only.includes(name)),
    rounds,
    isQuick: values.quick,
    jsonFile:
      values.json === undefined
        ? path.join(env.HONE_STATE_DIR ?? path.join(REPOSITORY, ".hone"), defaults.jsonName)
        : path.resolve(here, values.json),
    peersFolder: env[PEERS_VARIABLE] || path.join(homedir(), ".cache", "hone-peers"),
  };
}

function usageOf(sections: readonly string[], { command, rounds, jsonName }: BenchDefaults): string {
  return `${command} -- [options]

  --only NAMES    measure only these, with commas between them: ${sections.join(", ")}
  --rounds N      how often each figure is measured (${rounds}; with --quick ${QUICK_ROUNDS})
  --quick         smaller work: shows that everything runs, and measures nothing well
  --json FILE     where the figures are written as JSON (.hone/${jsonName})

The variable ${PEERS_VARIABLE} names the folder where peers are installed (~/.cache/hone-peers).`;
}

function invalid(flag: string, allowed: string, current: string): InvalidInputError {
  return new InvalidInputError(
    `Cannot run the bench as ${flag} takes ${allowed}: current value is ${current}`,
    {
      path: flag,
      allowed,
    },
  );
}
