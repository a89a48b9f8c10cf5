/** `hone debug FILE`: plays one rollout of a run file and shows it turn by turn, without a stack. */

import { Console } from "node:console";
import { resolve } from "node:path";
import { isInRange, rangeRule, SAMPLING_PARAMETERS } from "@hone/rl";
import { choosePolicy, describePolicy } from "../debug/choose-policy.ts";
import { type DebuggedRollout, debugRollout } from "../debug/debug-rollout.ts";
import { debuggerArgs, openDebugger } from "../debug/debugger-args.ts";
import { RolloutPrinter } from "../debug/rollout-printer.ts";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { shownPath, userFolder } from "../project.ts";
import { endpointArgs, endpointOf } from "../run/endpoint-args.ts";
import { findModel } from "../run/find-model.ts";
import { loadRunFile } from "../run/load-run-file.ts";
import { Terminal } from "../terminal.ts";

const SPLITS = ["train", "eval"] as const;

export const debugCommand = honeCommand({
  name: "debug",
  description: "Play one rollout of a run file and show each turn; needs no stack",
  args: {
    file: { type: "positional", required: true, description: "Run file, YAML or JSON", valueHint: "FILE" },
    row: {
      type: "string",
      description: "Number of the task in the order of its source, from 1; 1 by default",
      valueHint: "N",
    },
    split: {
      type: "enum",
      options: [...SPLITS],
      default: "train",
      description: "Split of the task: dataset.train or dataset.eval",
    },
    policy: {
      type: "string",
      description:
        "What answers: model (the run's start model, or --model), random (tokens), answers, endpoint, or a script such as random_legal",
      valueHint: "NAME",
    },
    model: {
      type: "string",
      description: "A run (RUN or RUN@VERSION), a folder or a hub id; with --endpoint the name of its model",
      valueHint: "MODEL",
    },
    answers: {
      type: "string",
      description: "YAML or JSON list of texts, the model's answers: one for each call",
      valueHint: "FILE",
    },
    ...endpointArgs,
    temperature: {
      type: "string",
      description: "Sampling temperature, instead of the file's; 0 always takes the most likely token",
      valueHint: "T",
    },
    seed: { type: "string", description: "Seed of the sampling, instead of the run file's", valueHint: "N" },
    logprobs: { type: "boolean", description: "Show the log-probability of each sampled token" },
    json: {
      type: "boolean",
      description: "Print the rollout as JSON to stdout, and everything else to stderr",
    },
    ...debuggerArgs,
  },
  run: async (session, args) => {
    const { project, signal } = session;
    const isJson = args.json === true;
    const terminal = isJson ? new Terminal(process.stderr) : session.terminal;
    // Keeps what an agent or a tool prints out of the JSON.
    if (isJson) globalThis.console = new Console(process.stderr);
    openDebugger(terminal, args);
    const file = resolve(userFolder(), args.file);
    const { config } = await loadRunFile(file, project.folder);
    const endpoint = endpointOf(args);
    const folders = { state: project.state, user: userFolder() };
    const policy = await choosePolicy({
      policy: args.policy,
      answers: args.answers === undefined ? undefined : resolve(userFolder(), args.answers),
      endpoint,
      model:
        args.model === undefined || endpoint !== undefined ? undefined : await findModel(args.model, folders),
    });
    const printer = new RolloutPrinter(terminal, { hasLogprobs: args.logprobs === true });
    terminal.line(`one rollout of ${shownPath(file)}, answered by ${describePolicy(policy)}`);
    const played = await debugRollout(config, {
      project,
      file: shownPath(file),
      split: SPLITS.find((each) => each === args.split) ?? "train",
      row: readNumber("row", args.row, 1) ?? 1,
      policy,
      temperature: args.temperature === undefined ? undefined : readTemperature(args.temperature),
      seed: readNumber("seed", args.seed, 0),
      signal,
      listener: printer.listener(),
    });
    printer.end(played);
    if (isJson) session.terminal.line(JSON.stringify(asJson(played), undefined, 2));
    return played.verdict.kind === "scored" ? 0 : 1;
  },
});

function asJson({ task, turns, record, verdict, groupJudges, rule }: DebuggedRollout): unknown {
  const { samples, turns: recorded, ...rest } = record;
  return {
    task,
    turns: turns.map((turn, index) => ({ ...turn, reward: recorded[index]?.reward ?? null })),
    ...rest,
    samples: samples.map(({ tokenIds, lossMask, logprobs }) => ({
      tokenIds,
      lossMask: Array.from(lossMask),
      logprobs,
    })),
    verdict,
    groupJudgesNotAsked: groupJudges,
    ruleOfOutcome: rule ?? null,
  };
}

function readNumber(name: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,15}$/.test(text) && Number(text) >= least) return Number(text);
  throw new UsageError(
    `--${name} ${text} is not allowed; it must be a whole number that is ${least} or more`,
  );
}

function readTemperature(text: string): number {
  const { range } = SAMPLING_PARAMETERS.temperature;
  if (/^\d{1,3}(\.\d{1,9})?$/.test(text) && isInRange(Number(text), range)) return Number(text);
  throw new UsageError(`--temperature ${text} is not allowed; it ${rangeRule(range)}`);
}
