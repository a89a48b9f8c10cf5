/** Errors of configuration. */

import { TerminalError } from "@hone/core";

/** One thing that is wrong with a configuration. */
export interface ConfigProblem {
  /** Path of the key, such as `rollout.groupSize`; empty for the whole file. */
  readonly key: string;
  /** The value found there; undefined when the key is missing. */
  readonly value: unknown;
  /** What is allowed, in words. */
  readonly allowed: string;
  /** A whole sentence for people: the key, its value and what is allowed. */
  readonly message: string;
}

/** A run file or the environment breaks its schema. The error carries all problems, not only the first. */
export class ConfigError extends TerminalError {
  readonly problems: readonly ConfigProblem[];

  constructor(source: string, problems: readonly ConfigProblem[], options?: ErrorOptions) {
    super(
      "INVALID_CONFIG",
      `Cannot use ${source}: ${problems.map(({ message }) => message).join("; ")}`,
      options,
    );
    this.problems = problems;
  }
}
