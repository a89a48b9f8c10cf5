/** The flags of `npm run bench` and `npm run bench:peers`. */

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
  /** Path of the JSON file. */
  readonly jsonFile: string;
  readonly peersFolder: string;
}

const QUICK_ROUNDS = 1;
const MAX_ROUNDS = 100;

/** The defaults of a bench. */
export interface BenchDefaults {
  /** The command, such as `npm run bench`. */
  readonly command: string;
  readonly rounds: number;
  /** Name of the JSON file, in the state folder. */
  readonly jsonName: string;
}

const DEFAULTS: BenchDefaults = { command: "npm run bench", rounds: 5, jsonName: "bench.json" };

/**
 * @param sections names that `--only` accepts.
 * @throws {InvalidInputError} for other flags or values, and for --help.
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
  // npm runs scripts in the repository, and passes the user's folder in INIT_CWD.
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
  return new InvalidInputError(`${flag} is ${current}; it must be ${allowed}`, {
    path: flag,
    allowed,
  });
}
