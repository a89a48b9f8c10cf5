/** Turns the body of a run request into a resolved run file, or into the list of its mistakes. */

import { ConfigError, inlineFiles, parseRunFile, type RunConfig, show } from "@hone/config";
import { runIdOf } from "@hone/core";
import type { Problem } from "../report/run-event.ts";
import type { NewRun } from "../run/run-registry.ts";
import { checkConfig } from "./check-config.ts";

export type ReadRequest =
  | { readonly kind: "run"; readonly run: NewRun }
  | { readonly kind: "refused"; readonly problems: readonly Problem[] };

/**
 * Reads a run file and the files that it names by path.
 * @param runFile returns its text; it may throw a ConfigError, too.
 * @param sequence of the request in RUNS; with the name it makes the run's id.
 * @param filesFolder paths of the run file resolve below it.
 */
export async function readRequest(
  runFile: () => string,
  sequence: number,
  filesFolder: string,
): Promise<ReadRequest> {
  let config: RunConfig;
  try {
    config = await inlineFiles(parseRunFile(runFile()), filesFolder);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { kind: "refused", problems: error.problems.map(problemOf) };
  }
  const problems = checkConfig(config);
  if (problems.length > 0) return { kind: "refused", problems };
  return {
    kind: "run",
    run: {
      runId: runIdOf(config.name, sequence),
      requestSequence: sequence,
      name: config.name,
      configJson: JSON.stringify(config),
    },
  };
}

/** A value may be the whole file, which its sender knows anyway. */
const MAX_VALUE_CHARACTERS = 2_000;

function problemOf({ key, value, allowed, message }: ConfigError["problems"][number]): Problem {
  const json = value === undefined ? "" : JSON.stringify(value);
  return {
    key,
    valueJson: json.length > MAX_VALUE_CHARACTERS ? JSON.stringify(show(value)) : json,
    allowed,
    message,
  };
}
