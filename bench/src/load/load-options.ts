/** The flags of `npm run load`. */

import path from "node:path";
import { InvalidInputError, parseScriptArguments } from "@hone/core";
import { REPOSITORY } from "../repository.ts";

export interface LoadOptions {
  /** Rollouts that are open at once. */
  readonly rollouts: number;
  /** Processes of agent-rollout, which share the rollouts. */
  readonly agentRollouts: number;
  /** Processes of the trainer, which share the runs. */
  readonly trainers: number;
  /** Runs at once, at least. */
  readonly runs: number;
  /** How long the load is held once it is reached. */
  readonly minutes: number;
  /** Duration of a step of the environment in milliseconds, which determines the number of rollouts per second. */
  readonly stepDelayMs: number;
  /** Rollouts of one run. */
  readonly tasksPerRun: number;
  /** Path of the JSON file. */
  readonly jsonFile: string;
}

/** With this, rollouts of 4 turns take 80 s, so that 10,000 open ones make 125 episodes per second: a third of two cores. */
const DEFAULT_STEP_DELAY_MS = 20_000;
/** Most replicas that `hone up --replicas` allows. */
const MAX_PROCESSES = 16;

const USAGE = `npm run load -- [options]

  --rollouts N         rollouts that are open at once (10000)
  --replicas N         processes of agent-rollout (2)
  --trainers N         processes of the trainer (1)
  --runs N             runs at once, at least (3)
  --minutes N          how long the load is held once it is reached (30)
  --step-delay-ms N    what a step of the environment takes (${DEFAULT_STEP_DELAY_MS})
  --tasks-per-run N    rollouts of one run (half of --rollouts)
  --json FILE          where the figures are written as JSON (.hone/load.json)`;

/** @throws {InvalidInputError} for other flags, values that are no whole numbers, and --help. */
export function parseLoadOptions(args: readonly string[], env: NodeJS.ProcessEnv = process.env): LoadOptions {
  const { values } = parseScriptArguments(args, {
    usage: USAGE,
    options: {
      rollouts: { type: "string", default: "10000" },
      replicas: { type: "string", default: "2" },
      trainers: { type: "string", default: "1" },
      runs: { type: "string", default: "3" },
      minutes: { type: "string", default: "30" },
      "step-delay-ms": { type: "string", default: String(DEFAULT_STEP_DELAY_MS) },
      "tasks-per-run": { type: "string" },
      json: { type: "string" },
    },
  });
  const rollouts = wholeNumber("--rollouts", values.rollouts, 100_000);
  const here = env.INIT_CWD ?? process.cwd();
  return {
    rollouts,
    agentRollouts: wholeNumber("--replicas", values.replicas, MAX_PROCESSES),
    trainers: wholeNumber("--trainers", values.trainers, MAX_PROCESSES),
    runs: wholeNumber("--runs", values.runs, 100),
    minutes: wholeNumber("--minutes", values.minutes, 10_000),
    stepDelayMs: wholeNumber("--step-delay-ms", values["step-delay-ms"], 3_600_000),
    tasksPerRun: wholeNumber(
      "--tasks-per-run",
      values["tasks-per-run"] ?? String(Math.ceil(rollouts / 2)),
      1_000_000,
    ),
    jsonFile:
      values.json === undefined
        ? path.join(env.HONE_STATE_DIR ?? path.join(REPOSITORY, ".hone"), "load.json")
        : path.resolve(here, values.json),
  };
}

function wholeNumber(flag: string, text: string, most: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw new InvalidInputError(`${flag} is ${text}; it must be a whole number from 1 to ${most}`, {
    path: flag,
    allowed: `a whole number from 1 to ${most}`,
  });
}
