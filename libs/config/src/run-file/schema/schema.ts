/**
 * The run file: what one training job is.
 *
 * Every key has its meaning, unit and default here; docs/run-file.md shows the same for people. Unknown keys are
 * refused. The resolved file (every default filled in) is stored with the run and is what services get to see.
 */

import { isRunName } from "@hone/core";
import { algorithmSchema, curriculumSchema } from "@hone/rl";
import { z } from "zod";
import { agentSchema } from "./agent.ts";
import { judgesSchema } from "./judges.ts";
import { modelEndpointSchema } from "./model-endpoint.ts";
import { fileSourceSchema, taskSourceSchema } from "./sources.ts";

const MAX_TASKS_PER_STEP = 10_000;
const MAX_GROUP_SIZE = 1_024;
/** Of scripts: they stand in spans, rows and messages of every rollout. */
const MAX_NAME_CHARACTERS = 128;
/** What file systems take. */
const MAX_PATH_CHARACTERS = 1_024;

/** As PEFT and verl name them. */
const LORA_TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"] as const;

const wholeNumber = z.number().int();
const seedNumber = wholeNumber.min(0).max(Number.MAX_SAFE_INTEGER);

/** A model made from scratch. */
const modelInit = z.strictObject({
  architecture: z.literal("qwen3"),
  hiddenSize: wholeNumber.min(8).max(8_192),
  numLayers: wholeNumber.min(1).max(128),
  numHeads: wholeNumber.min(1).max(128),
  /** Heads of K and V. Default: numHeads. */
  numKvHeads: wholeNumber.min(1).max(128).optional(),
  /** Default: hiddenSize / numHeads. */
  headDim: wholeNumber.min(2).max(512).optional(),
  /** Width of the feed-forward layer. Default: 3 x hiddenSize. */
  intermediateSize: wholeNumber.min(8).max(65_536).optional(),
  ropeTheta: z.number().positive().default(10_000),
  rmsNormEps: z.number().positive().default(1e-6),
  maxPositions: wholeNumber.min(16).max(1_048_576).default(4_096),
  /** Path of tokenizer.json (tokenizer_config.json and chat_template.jinja lie beside it), or the files themselves. */
  tokenizer: z.union([
    z.string().min(1).max(MAX_PATH_CHARACTERS),
    z.strictObject({ files: z.record(z.string(), z.string()) }),
  ]),
});

/** Adapters that are trained beside a model that stays as it is. */
const lora = z.strictObject({
  rank: wholeNumber.min(1).max(1_024),
  /** The adapters count alpha / rank. */
  alpha: z.number().positive().max(1e6).default(16),
  /** Projections that get one, in every layer. */
  targets: z
    .union([
      z.literal("all-linear"),
      z
        .array(z.enum(LORA_TARGETS))
        .min(1)
        .refine((targets) => new Set(targets).size === targets.length, "a list without repetitions"),
    ])
    .default("all-linear"),
});

/** A checkpoint that is there already. */
const pretrainedModel = z.strictObject({
  /** A folder in the Hugging Face layout, absolute or below the project folder, or an id of the Hugging Face hub. */
  path: z.string().min(1).max(1_024),
  /** Branch, tag or commit of the hub's repository. */
  revision: z.string().min(1).max(255).default("main"),
  /** How exports store the weights; auto = as the checkpoint does. The embedded engine computes in float32. */
  dtype: z.enum(["auto", "float32", "float16", "bfloat16"]).default("auto"),
  /** Absent = all weights are trained. */
  lora: lora.optional(),
});

const sampling = z.strictObject({
  /** 0 = always the most likely token. */
  temperature: z.number().min(0).max(100).default(1),
  topP: z.number().gt(0).max(1).default(1),
  /** 0 = all tokens. */
  topK: wholeNumber.min(0).default(0),
  /** Least probability of a token, as a share of the most likely one's. */
  minP: z.number().min(0).max(1).default(0),
  /** Logits of tokens in the context are divided by it, or multiplied where negative. */
  repetitionPenalty: z.number().gt(0).max(100).default(1),
  /** Most tokens of one turn. */
  maxNewTokens: wholeNumber.min(1).max(65_536).default(256),
});

const optimizer = z.strictObject({
  kind: z.literal("adamw"),
  learningRate: z.number().positive().max(1),
  beta1: z.number().min(0).lt(1).default(0.9),
  beta2: z.number().min(0).lt(1).default(0.95),
  epsilon: z.number().positive().default(1e-8),
  /** Decoupled; matrices only. */
  weightDecay: z.number().min(0).default(0),
  /** Largest global norm of the gradient. */
  maxGradNorm: z.number().positive().default(1),
  schedule: z
    .strictObject({
      kind: z.enum(["constant", "linear", "cosine"]).default("constant"),
      /** Steps over which the rate rises from 0. */
      warmupSteps: wholeNumber.min(0).default(0),
      /** Share of the rate that is left at the last step. */
      finalRatio: z.number().min(0).max(1).default(0),
    })
    .prefault({}),
});

/** Tokens of a forward-backward pass, which bounds the memory of its activations. */
const microbatchTokens = wholeNumber.min(1).max(1_048_576).default(1_024);

/** The embedded engine. */
const onnxEngine = z.strictObject({ kind: z.literal("onnx"), microbatchTokens });

/** PyTorch workers, where the trainer has them. */
const fsdpEngine = z.strictObject({
  kind: z.literal("fsdp2"),
  /** Of each worker's pass. */
  microbatchTokens,
  /** Workers that share the model, as many on each node of the trainer. Default: every GPU of its nodes, or one a node on CPUs. */
  worldSize: wholeNumber.min(1).max(1_024).optional(),
  /** What layers compute with; weights, sums of gradients and the optimizer are float32. Default: bfloat16 on GPUs, float32 on CPUs. */
  dtype: z.enum(["bfloat16", "float32"]).optional(),
  /** Layers keep their inputs only and are computed again on the way back: less memory, a third more work. */
  activationCheckpointing: z.boolean().default(false),
  /** Weights, gradients and the optimizer lie in the host's memory, and visit the GPU. */
  cpuOffload: z.boolean().default(false),
});

const trainer = z.strictObject({
  engine: z.discriminatedUnion("kind", [onnxEngine, fsdpEngine]).prefault({ kind: "onnx" }),
  steps: wholeNumber.min(0).max(10_000_000),
  epochs: wholeNumber.min(1).max(64).default(1),
  /** Optimizer updates per epoch; groups are split evenly. */
  minibatches: wholeNumber.min(1).max(1_024).default(1),
  /** Versions by which a token may be older than the policy it trains. This build trains synchronously: 0. */
  maxStaleness: wholeNumber
    .refine((versions) => versions === 0, "0, as this version of Hone trains synchronously only")
    .default(0),
  optimizer,
  checkpoint: z
    .strictObject({
      /** Steps between two checkpoints; 0 = only at the end. */
      every: wholeNumber.min(0).default(0),
      /** Checkpoints kept, the newest. */
      keep: wholeNumber.min(1).default(2),
    })
    .prefault({}),
  /** Steps between two states with the optimizer; the steps between are replayed after a restart. Default: by size. */
  stateEvery: wholeNumber.min(1).max(1_000).optional(),
  eval: z
    .strictObject({
      /** Steps between two evaluations; 0 = only before the first step and after the last. */
      every: wholeNumber.min(0).default(0),
      /** Held-out tasks of every evaluation but the last of a training, which takes all; absent = all. */
      tasks: wholeNumber.min(1).optional(),
      /** Whether tasks are played as the run samples, with the most likely tokens, or both. */
      modes: z
        .array(z.enum(["sampled", "greedy"]))
        .min(1)
        .max(2)
        .default(["sampled", "greedy"]),
      /** Sampled rollouts of each task. */
      samples: wholeNumber.min(1).max(MAX_GROUP_SIZE).default(1),
      /** The k of every pass@k that is told. Default: 1, 2, 4 ... up to `samples`. */
      passAt: z.array(wholeNumber.min(1).max(MAX_GROUP_SIZE)).min(1).max(16).optional(),
      /** Reward from which a rollout passes whose agent reports no success. */
      passReward: z.number().default(1),
      /** A model behind an OpenAI-compatible API that is evaluated in the place of the run's own; only without training. */
      endpoint: modelEndpointSchema.optional(),
    })
    .prefault({}),
});

/** The whole file, key by key; run-file-schema.ts adds what keys say of each other. */
export const runFileKeys = z.strictObject({
  name: z.string().refine(isRunName, "1 to 40 characters out of a-z, 0-9 and -"),
  seed: seedNumber.default(0),
  model: z.union([z.strictObject({ init: modelInit }), pretrainedModel]),
  warmStart: z
    .strictObject({
      kind: z.literal("sft"),
      /** Scripted policy whose rollouts are imitated. */
      policy: z.string().min(1).max(MAX_NAME_CHARACTERS).optional(),
      /** Rollouts of the scripted policy. */
      tasks: wholeNumber.min(1).max(1_000_000).optional(),
      /** Conversations whose answers are imitated, in the place of a policy's rollouts. */
      dataset: fileSourceSchema.optional(),
      epochs: wholeNumber.min(1).max(100).default(1),
      /** Default: that of the optimizer. */
      learningRate: z.number().positive().max(1).optional(),
      /** Rollouts or conversations of one optimizer update. */
      batchSize: wholeNumber.min(1).max(10_000).default(64),
    })
    .optional(),
  dataset: z.strictObject({
    train: taskSourceSchema,
    eval: taskSourceSchema.optional(),
    /** Absent = every task comes as often as every other. */
    curriculum: curriculumSchema.optional(),
  }),
  agent: agentSchema,
  rollout: z.strictObject({
    tasksPerStep: wholeNumber.min(1).max(MAX_TASKS_PER_STEP),
    groupSize: wholeNumber.min(1).max(MAX_GROUP_SIZE),
    maxTurns: wholeNumber.min(1).max(1_000).default(10),
    maxContextTokens: wholeNumber.min(1).max(1_048_576).default(4_096),
    /** For one attempt; waits for Hone's own parts do not count. */
    deadlineMs: wholeNumber.min(100).max(86_400_000).default(60_000),
    maxAttempts: wholeNumber.min(1).max(100).default(3),
    /** What a step, an evaluation or a warm start does whose rollouts all fail for one reason. */
    onUniformFailure: z.enum(["stop", "continue"]).default("stop"),
    sampling: sampling.prefault({}),
  }),
  judge: judgesSchema,
  algorithm: algorithmSchema.prefault({}),
  trainer,
});

/** A run file with every default filled in. */
export type RunConfig = z.output<typeof runFileKeys>;
export type ModelInit = z.output<typeof modelInit>;
export type PretrainedModel = z.output<typeof pretrainedModel>;
export type LoraConfig = z.output<typeof lora>;
