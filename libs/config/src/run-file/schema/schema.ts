/**
 * The run file, which describes one training job.
 *
 * Every key has its meaning, unit and default here; docs/run-file.md describes the same for users. Unknown keys are
 * refused. The resolved file, with every default filled in, is stored with the run and given to the services.
 */

import { isRunName } from "@hone/core";
import {
  algorithmSchema,
  curriculumSchema,
  distillationSchema,
  listOfTeachers,
  modelPlaceShape,
  OnNewVersion,
  Quantization,
  samplingSchema,
  teacherSchema,
  valueLossSchema,
} from "@hone/rl";
import { z } from "zod";
import { agentSchema } from "./agent.ts";
import { judgesSchema } from "./judges.ts";
import { modelEndpointSchema, teacherEndpointSchema } from "./model-endpoint.ts";
import { optimizer } from "./optimizer.ts";
import { policiesSchema, rolesSchema } from "./policies.ts";
import { fileSourceSchema, MAX_CONCURRENCY, taskSourceSchema } from "./sources.ts";

const MAX_TASKS_PER_STEP = 10_000;
const MAX_GROUP_SIZE = 1_024;
/** The shortest time limit of an attempt. */
export const MIN_DEADLINE_MS = 100;
/** Shorter than this, a reward could hardly be given after the rollout's end. */
const MIN_REWARD_DEADLINE_MS = 1_000;
/** Thirty days. */
const MAX_REWARD_DEADLINE_MS = 30 * 86_400_000;
/** Names of scripted policies are part of the spans, rows and messages of every rollout. */
const MAX_NAME_CHARACTERS = 128;
/** The longest path that file systems allow. */
const MAX_PATH_CHARACTERS = 1_024;

/** The projections, by their names in PEFT and verl. */
const LORA_TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"] as const;

const wholeNumber = z.number().int();
const seedNumber = wholeNumber.min(0).max(Number.MAX_SAFE_INTEGER);

/** A model made from scratch. */
const modelInit = z.strictObject({
  architecture: z.literal("qwen3"),
  hiddenSize: wholeNumber.min(8).max(8_192),
  numLayers: wholeNumber.min(1).max(128),
  numHeads: wholeNumber.min(1).max(128),
  /** Number of key and value heads. Default: numHeads. */
  numKvHeads: wholeNumber.min(1).max(128).optional(),
  /** Default: hiddenSize / numHeads. */
  headDim: wholeNumber.min(2).max(512).optional(),
  /** Width of the feed-forward layer. Default: 3 x hiddenSize. */
  intermediateSize: wholeNumber.min(8).max(65_536).optional(),
  ropeTheta: z.number().positive().default(10_000),
  rmsNormEps: z.number().positive().default(1e-6),
  maxPositions: wholeNumber.min(16).max(1_048_576).default(4_096),
  /** The path of tokenizer.json, with tokenizer_config.json and chat_template.jinja beside it, or the contents of these files. */
  tokenizer: z.union([
    z.string().min(1).max(MAX_PATH_CHARACTERS),
    z.strictObject({ files: z.record(z.string(), z.string()) }),
  ]),
});

/** LoRA adapters, which are trained while the model's own weights stay fixed. */
const lora = z.strictObject({
  rank: wholeNumber.min(1).max(1_024),
  /** The adapters' outputs are scaled by alpha / rank. */
  alpha: z.number().positive().max(1e6).default(16),
  /** Projections that get an adapter, in every layer. */
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

/** A pretrained checkpoint. */
const pretrainedModel = z.strictObject({
  ...modelPlaceShape,
  /** The type of the weights in exports; auto = that of the checkpoint. The embedded engine computes in float32. */
  dtype: z.enum(["auto", "float32", "float16", "bfloat16"]).default("auto"),
  /** Absent = all weights are trained. */
  lora: lora.optional(),
});

/** Tokens of one forward and backward pass; they bound the memory of its activations. */
const microbatchTokens = wholeNumber.min(1).max(1_048_576).default(1_024);

/** The embedded engine. */
const onnxEngine = z.strictObject({
  kind: z.literal("onnx"),
  microbatchTokens,
  /**
   * How the products of the forward pass are computed: in float32, or in eight bits as in generation, with gradients as in float32.
   * Default: rollout.quantization.
   */
  quantization: z.enum(Quantization).optional(),
  /** Whether the layers compute the gradients of their inputs in eight bits, too; only with that quantization. */
  quantizedGradients: z.boolean().default(false),
});

/** PyTorch workers, if the trainer has them. */
const fsdpEngine = z.strictObject({
  kind: z.literal("fsdp2"),
  /** Tokens of one pass on each worker. */
  microbatchTokens,
  /** Number of workers that share the model, equally many on each node of the trainer. Default: one per GPU, or per node on CPUs. */
  worldSize: wholeNumber.min(1).max(1_024).optional(),
  /** The type that layers compute with; weights, gradient sums and optimizer state are float32. Default: bfloat16 on GPUs, float32 on CPUs. */
  dtype: z.enum(["bfloat16", "float32"]).optional(),
  /** Layers keep only their inputs and are computed again in the backward pass: less memory, a third more computation. */
  activationCheckpointing: z.boolean().default(false),
  /** Weights, gradients and optimizer state are kept in the host's memory and copied to the GPU when needed. */
  cpuOffload: z.boolean().default(false),
});

/** A model that is trained beside the policy and says what reward it expects, for advantages that compare with it. */
const critic = z.strictObject({
  /** The model whose layers it begins with, which has the tokenizer of the policy. Default: version 0 of the policy. */
  model: z.strictObject(modelPlaceShape).optional(),
  /** How values that are wrong become one number. */
  loss: valueLossSchema,
  /** Default: trainer.optimizer. */
  optimizer: optimizer.optional(),
  /** Default: trainer.epochs. */
  epochs: wholeNumber.min(1).max(64).optional(),
  /** Default: trainer.minibatches. */
  minibatches: wholeNumber.min(1).max(1_024).optional(),
  /** Number of first steps in which the critic alone is trained. */
  warmupSteps: wholeNumber.min(0).default(0),
});

const distillation = distillationSchema.extend({
  teachers: listOfTeachers(
    teacherSchema.extend({
      /** A model behind an API that scores the tokens, in place of `model`. */
      endpoint: teacherEndpointSchema.optional(),
    }),
  ),
});

/** Conversations of a dataset that each update imitates, beside what it learns from rollouts. */
const supervised = z.strictObject({
  dataset: fileSourceSchema,
  /** Factor of its part of the loss, the mean cross-entropy of the answers' tokens. */
  coefficient: z.number().positive().max(1e3).default(0.1),
  /** Number of conversations in one optimizer update. */
  batchSize: wholeNumber.min(1).max(10_000).default(8),
});

/** It names a folder, so nothing else may. */
const RUN_ID = /^[a-z0-9-]{1,64}$/;

/** More steps ahead would hold more rollouts than the queue and the stream are made for. */
const MAX_STALENESS = 64;

/** A step's records are one statement of the commit: at 60 bytes a token this is 60 MB. */
const MAX_RECORDED_TOKENS = 1_000_000;

const trainer = z.strictObject({
  engine: z.discriminatedUnion("kind", [onnxEngine, fsdpEngine]).prefault({ kind: "onnx" }),
  steps: wholeNumber.min(0).max(10_000_000),
  epochs: wholeNumber.min(1).max(64).default(1),
  /** Optimizer updates per epoch; groups are split evenly. */
  minibatches: wholeNumber.min(1).max(1_024).default(1),
  /** How many versions older than the trained policy a token may be; 0 = no rollout is played while a step trains. */
  maxStaleness: wholeNumber.min(0).max(MAX_STALENESS).default(0),
  /** What happens to generations under way when a version is published; without maxStaleness there are none. */
  onNewVersion: z.enum(OnNewVersion).default(OnNewVersion.recompute),
  optimizer,
  /** Trained where the advantage needs values; absent = none. */
  critic: critic.optional(),
  checkpoint: z
    .strictObject({
      /** Steps between two checkpoints; 0 = only at the end. */
      every: wholeNumber.min(0).default(0),
      /** How many of the newest checkpoints are kept. */
      keep: wholeNumber.min(1).default(2),
    })
    .prefault({}),
  /** Whether the rollouts of every step are kept in the state folder, so that `hone replay` can train them again. */
  keepRollouts: z.boolean().default(false),
  /** Steps between two whole states that are kept, so that `hone replay` can begin at a later step; 0 = none. */
  keepStates: wholeNumber.min(0).default(0),
  /** What is recorded of trained tokens, from their advantage to what they add to the gradient. */
  tokenRecord: z
    .strictObject({
      /** Tokens of a step, counted once for each epoch, up to which every rollout is recorded token by token; of larger steps
       * whole rollouts are drawn. 0 = nothing is recorded. */
      tokensPerStep: wholeNumber.min(0).max(MAX_RECORDED_TOKENS).default(8_192),
      /** Bytes that the records of the run may take; beyond them those of the oldest steps are removed. */
      maxBytes: wholeNumber
        .min(2 ** 20)
        .max(2 ** 34)
        .default(64 * 2 ** 20),
    })
    .prefault({}),
  /** Steps between two saved states with the optimizer; after a restart the steps since the last one are replayed. Default: by size. */
  stateEvery: wholeNumber.min(1).max(1_000).optional(),
  eval: z
    .strictObject({
      /** Steps between two evaluations; 0 = only before the first step and after the last. */
      every: wholeNumber.min(0).default(0),
      /** Number of held-out tasks in an evaluation; absent = all. The last evaluation of a training always takes all. */
      tasks: wholeNumber.min(1).optional(),
      /** Whether tasks are played with the run's sampling, greedily, or both. */
      modes: z
        .array(z.enum(["sampled", "greedy"]))
        .min(1)
        .max(2)
        .default(["sampled", "greedy"]),
      /** Number of sampled rollouts of each task. */
      samples: wholeNumber.min(1).max(MAX_GROUP_SIZE).default(1),
      /** The values of k for which pass@k is reported. Default: 1, 2, 4 ... up to `samples`. */
      passAt: z.array(wholeNumber.min(1).max(MAX_GROUP_SIZE)).min(1).max(16).optional(),
      /** If the agent does not report success itself, a rollout passes with at least this reward. */
      passReward: z.number().default(1),
      /** A model behind an OpenAI-compatible API that is evaluated instead of the run's own; only in runs that do not train. */
      endpoint: modelEndpointSchema.optional(),
    })
    .prefault({}),
});

/** All keys of the file; run-file-schema.ts adds the rules between keys. */
export const runFileKeys = z.strictObject({
  name: z.string().refine(isRunName, "1 to 40 characters out of a-z, 0-9 and -"),
  seed: seedNumber.default(0),
  model: z.union([z.strictObject({ init: modelInit }), pretrainedModel]),
  warmStart: z
    .strictObject({
      kind: z.literal("sft"),
      /** The scripted policy whose rollouts are imitated. */
      policy: z.string().min(1).max(MAX_NAME_CHARACTERS).optional(),
      /** Number of rollouts of the scripted policy. */
      tasks: wholeNumber.min(1).max(1_000_000).optional(),
      /** Conversations whose answers are imitated, instead of a policy's rollouts. */
      dataset: fileSourceSchema.optional(),
      epochs: wholeNumber.min(1).max(100).default(1),
      /** Default: the learning rate of the optimizer. */
      learningRate: z.number().positive().max(1).optional(),
      /** Number of rollouts or conversations in one optimizer update. */
      batchSize: wholeNumber.min(1).max(10_000).default(64),
    })
    .optional(),
  dataset: z.strictObject({
    train: taskSourceSchema,
    eval: taskSourceSchema.optional(),
    /** Absent = all tasks come equally often. */
    curriculum: curriculumSchema.optional(),
  }),
  agent: agentSchema,
  /** Policies beside the run's own, by name. */
  policies: policiesSchema.optional(),
  /** The roles of a rollout that learn apart from each other, by name. Absent = a rollout is learnt from as a whole. */
  roles: rolesSchema.optional(),
  rollout: z.strictObject({
    tasksPerStep: wholeNumber.min(1).max(MAX_TASKS_PER_STEP),
    groupSize: wholeNumber.min(1).max(MAX_GROUP_SIZE),
    /** What a step starts beyond that; the groups and rollouts that finish first are trained. Absent = nothing. */
    redundancy: z
      .strictObject({
        tasks: wholeNumber.min(0).max(MAX_TASKS_PER_STEP).default(0),
        rollouts: wholeNumber.min(0).max(MAX_GROUP_SIZE).default(0),
      })
      .optional(),
    /** How many rollouts of the run are in the queue or played at once, over all processes. Absent = as many as there is room for. */
    maxConcurrency: wholeNumber.min(1).max(MAX_CONCURRENCY).optional(),
    maxTurns: wholeNumber.min(1).max(1_000).default(10),
    maxContextTokens: wholeNumber.min(1).max(1_048_576).default(4_096),
    /** Time limit of one attempt; waiting for Hone's own services does not count. */
    deadlineMs: wholeNumber.min(MIN_DEADLINE_MS).max(86_400_000).default(60_000),
    /** Ends attempts that take much longer than those of earlier steps did; absent = only deadlineMs ends them. */
    deadline: z
      .strictObject({
        /** The share of attempts that took no longer than... */
        quantile: z.number().gt(0).lte(1).default(0.99),
        /** ...the time that, multiplied by this, is the deadline. */
        factor: z.number().min(1).max(1_000).default(2),
        /** Number of attempts that must have been seen; the last steps with so many attempts count. */
        window: wholeNumber.min(1).max(1_000_000).default(256),
      })
      .optional(),
    maxAttempts: wholeNumber.min(1).max(100).default(3),
    /** How long a rollout that has ended waits for the rewards of judges of the kind `later`; absent = there are no such judges. */
    rewardDeadlineMs: wholeNumber.min(MIN_REWARD_DEADLINE_MS).max(MAX_REWARD_DEADLINE_MS).optional(),
    /** What happens to a step, an evaluation or a warm start whose rollouts all fail for the same reason. */
    onUniformFailure: z.enum(["stop", "continue"]).default("stop"),
    sampling: samplingSchema.prefault({}),
    /** How the embedded engine computes what it generates: in float32, or in eight bits. */
    quantization: z.enum(Quantization).default(Quantization.none),
  }),
  judge: judgesSchema,
  algorithm: algorithmSchema
    .extend({ distillation: distillation.optional(), supervised: supervised.optional() })
    .prefault({}),
  trainer,
  /** The run whose kept rollouts are trained again, step by step, in place of new ones. */
  replay: z
    .strictObject({
      run: z.string().regex(RUN_ID, "the id of a run, as hone status shows it"),
      /** The first step that is trained again, from the kept state of the version before it. Default: 1, from scratch. */
      from: wholeNumber.min(1).optional(),
    })
    .optional(),
});

/** A run file with every default filled in. */
export type RunConfig = z.output<typeof runFileKeys>;
export type ModelInit = z.output<typeof modelInit>;
export type PretrainedModel = z.output<typeof pretrainedModel>;
export type LoraConfig = z.output<typeof lora>;
