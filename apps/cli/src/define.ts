/** Defines a command with citty: it runs in a session, and unknown options are refused instead of ignored. */

import { nearest } from "@hone/core";
import { type ArgsDef, type CommandDef, defineCommand, type ParsedArgs } from "citty";
import { UsageError } from "./errors.ts";
import { runSession, type Session } from "./session.ts";

export interface HoneCommand<Args extends ArgsDef> {
  readonly name: string;
  /** The command that it belongs to, such as `data` for `hone data prepare`. */
  readonly parent?: string;
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
        refuseUnknown([command.parent ?? [], command.name].flat().join(" "), command.args, rawArgs);
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
    const options = known.filter((each) => !positionals.includes(each));
    const guess = nearest(name, options);
    const hint =
      guess !== undefined
        ? `did you mean --${guess}?`
        : options.length === 0
          ? "it has none"
          : `its options are ${options.map((each) => `--${each}`).join(", ")}`;
    throw new UsageError(`hone ${command} has no option ${raw}; ${hint}`);
  }
  const given = rawArgs.filter((each) => !each.startsWith("-"));
  const takesValues = known.some((name) => args[name]?.type === "string");
  if (!takesValues && given.length > positionals.length) {
    const takes =
      positionals.length === 0
        ? "no arguments"
        : `${positionals.length} argument${positionals.length === 1 ? "" : "s"}`;
    throw new UsageError(`hone ${command} takes ${takes}, and was given: ${given.join(" ")}`);
  }
}
