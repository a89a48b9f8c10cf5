/** Commands as citty has them, with a session around each, and unknown options refused instead of ignored. */

import { nearest } from "@hone/core";
import { type ArgsDef, type CommandDef, defineCommand, type ParsedArgs } from "citty";
import { UsageError } from "./errors.ts";
import { runSession, type Session } from "./session.ts";

export interface HoneCommand<Args extends ArgsDef> {
  readonly name: string;
  readonly description: string;
  readonly args: Args;
  /** @returns the exit code. */
  run(session: Session, args: ParsedArgs<Args>): Promise<number>;
}

export function honeCommand<const Args extends ArgsDef>(command: HoneCommand<Args>): CommandDef<Args> {
  return defineCommand({
    meta: { name: command.name, description: command.description },
    args: command.args,
    run: ({ args, rawArgs }) =>
      runSession(async (session) => {
        refuseUnknown(command.name, command.args, rawArgs);
        return command.run(session, args as ParsedArgs<Args>);
      }),
  }) as CommandDef<Args>;
}

function refuseUnknown(command: string, args: ArgsDef, rawArgs: readonly string[]): void {
  const known = Object.keys(args);
  const positionals = known.filter((name) => args[name]?.type === "positional");
  for (const raw of rawArgs.filter((each) => each.startsWith("--") && each !== "--")) {
    const name = raw.slice(2).split("=")[0]?.replace(/^no-/, "") ?? "";
    if (known.includes(name) && !positionals.includes(name)) continue;
    const guess = nearest(name, known);
    throw new UsageError(
      `Cannot run hone ${command} as its options are ${
        known
          .filter((each) => !positionals.includes(each))
          .map((each) => `--${each}`)
          .join(", ") || "none"
      }: current value is ${raw}${guess === undefined ? "" : `; did you mean --${guess}?`}`,
    );
  }
  const given = rawArgs.filter((each) => !each.startsWith("-"));
  const takesValues = known.some((name) => args[name]?.type === "string");
  if (!takesValues && given.length > positionals.length) {
    throw new UsageError(
      `Cannot run hone ${command} as it takes ${positionals.length} argument${positionals.length === 1 ? "" : "s"}: current value is ${given.join(" ")}`,
    );
  }
}
