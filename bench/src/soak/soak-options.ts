/** The flags of `npm run soak`. */

import path from "node:path";
import { InvalidInputError, parseScriptArguments } from "@hone/core";
import { type ModelSpec, resolveModelSpec } from "@hone/nn";
import { REPOSITORY } from "../repository.ts";

export interface SoakOptions {
  /** Shape of the model, which has random weights. */
  readonly spec: ModelSpec;
  readonly generations: number;
  readonly steps: number;
  readonly swaps: number;
  /** Most generations per batch. */
  readonly maxBatch: number;
  /** Most tokens of a prompt, and of an answer. */
  readonly maxPrompt: number;
  readonly maxNew: number;
  /** Samples per training step. */
  readonly stepSamples: number;
  /** Time between two samples of the memory. */
  readonly intervalMs: number;
  /** Path of the JSON file. */
  readonly jsonFile: string;
}

/** The shape of SmolLM2-135M, and one that is small enough for a test. */
const SHAPES = {
  "135m": {
    family: "llama",
    vocabSize: 49_152,
    hiddenSize: 576,
    numLayers: 30,
    numHeads: 9,
    numKeyValueHeads: 3,
    intermediateSize: 1_536,
    maxPositions: 2_048,
  },
  tiny: { family: "llama", vocabSize: 64, hiddenSize: 32, numLayers: 2, numHeads: 2, maxPositions: 2_048 },
} as const;

const USAGE = `npm run soak -- [options]

  --shape NAME        shape of the model: ${Object.keys(SHAPES).join(", ")} (135m)
  --generations N     generations in all (2000)
  --steps N           training steps (100)
  --swaps N           policy versions that are written by one engine and loaded by the other (20)
  --max-batch N       most generations at once (32)
  --max-prompt N      most tokens of a prompt (128)
  --max-new N         most tokens of an answer (64)
  --step-samples N    samples of a training step (4)
  --interval-ms N     time between two looks at the memory (1000)
  --json FILE         where the figures are written as JSON (.hone/soak.json)`;

/** @throws {InvalidInputError} for other flags, values that are no whole numbers, and --help. */
export function parseSoakOptions(args: readonly string[], env: NodeJS.ProcessEnv = process.env): SoakOptions {
  const { values } = parseScriptArguments(args, {
    usage: USAGE,
    options: {
      shape: { type: "string", default: "135m" },
      generations: { type: "string", default: "2000" },
      steps: { type: "string", default: "100" },
      swaps: { type: "string", default: "20" },
      "max-batch": { type: "string", default: "32" },
      "max-prompt": { type: "string", default: "128" },
      "max-new": { type: "string", default: "64" },
      "step-samples": { type: "string", default: "4" },
      "interval-ms": { type: "string", default: "1000" },
      json: { type: "string" },
    },
  });
  const shape = SHAPES[values.shape as keyof typeof SHAPES];
  if (shape === undefined) throw invalid("--shape", `one of ${Object.keys(SHAPES).join(", ")}`, values.shape);
  const wholeNumber = (
    flag: Exclude<keyof typeof values, "shape" | "json" | "help">,
    most: number,
  ): number => {
    const value = Number(values[flag]);
    if (Number.isInteger(value) && value >= 1 && value <= most) return value;
    throw invalid(`--${flag}`, `a whole number from 1 to ${most}`, values[flag]);
  };
  const here = env.INIT_CWD ?? process.cwd();
  return {
    spec: resolveModelSpec(shape),
    generations: wholeNumber("generations", 10_000_000),
    steps: wholeNumber("steps", 1_000_000),
    swaps: wholeNumber("swaps", 1_000_000),
    maxBatch: wholeNumber("max-batch", 256),
    maxPrompt: wholeNumber("max-prompt", 512),
    maxNew: wholeNumber("max-new", 512),
    stepSamples: wholeNumber("step-samples", 256),
    intervalMs: wholeNumber("interval-ms", 60_000),
    jsonFile:
      values.json === undefined
        ? path.join(env.HONE_STATE_DIR ?? path.join(REPOSITORY, ".hone"), "soak.json")
        : path.resolve(here, values.json),
  };
}

function invalid(flag: string, allowed: string, current: string): InvalidInputError {
  return new InvalidInputError(`${flag} is ${current}; it must be ${allowed}`, {
    path: flag,
    allowed,
  });
}
