/**
 * Tables of the trainer, in its schema "trainer". The SQL that makes them is in migrations.ts.
 *
 *   runs          one row per run: its file, its owner, the last committed version
 *   ledger        one row per trained rollout, or per role's part of one; unique, so none is trained twice
 *   steps         one row per committed version, with its metrics
 *   gradients     one row per committed step and policy that learnt, with what made its gradient
 *   token_records one row per trained rollout, or role's part of one, whose tokens are recorded, until the records take too much room
 *   visits        one row per task of a committed step, where the run has a curriculum
 *   groups        one row per group of an asynchronous run, from when it is asked for
 *   evaluations   one row per version and mode
 */

import {
  bigint,
  boolean,
  customType,
  doublePrecision,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
} from "@hone/storage";
import type { StepGradient } from "../domain/record/rollout-tokens.ts";
import type { GatheredTroubles } from "../domain/report/run-status.ts";

const bytea = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => "bytea" });

export const runs = pgTable("runs", {
  runId: text("run_id").primaryKey(),
  requestSequence: bigint("request_sequence", { mode: "number" }).notNull().unique(),
  name: text("name").notNull(),
  /** See RunStage in the domain. */
  stage: text("stage").notNull(),
  configJson: text("config_json").notNull(),
  /** Last committed version; null before version 0. */
  version: integer("version"),
  stateFolder: text("state_folder").notNull().default(""),
  stateDigest: text("state_digest").notNull().default(""),
  /** SHA-256 by file; empty in rows that are older than the record of files. */
  stateFiles: jsonb("state_files").$type<Record<string, string>>().notNull().default({}),
  /** What the bits of the version depend on beside the run; empty in rows that are older than this column. */
  arithmetic: text("arithmetic").notNull().default(""),
  /** The newest state with the optimizer; empty before the first, and in rows that are older than this column. */
  recoveryFolder: text("recovery_folder").notNull().default(""),
  recoveryDigest: text("recovery_digest").notNull().default(""),
  recoveryFiles: jsonb("recovery_files").$type<Record<string, string>>().notNull().default({}),
  /** The version of that state; null = it was saved within the warm start, after `warm_updates` updates. */
  recoveryVersion: integer("recovery_version"),
  warmUpdates: integer("warm_updates").notNull().default(0),
  nextSequence: bigint("next_sequence", { mode: "number" }).notNull().default(1),
  owner: text("owner"),
  epoch: bigint("epoch", { mode: "number" }).notNull().default(0),
  /** Tenures since the last commit or evaluation whose process died before they ended. */
  tenures: integer("tenures").notNull().default(0),
  leaseUntil: timestamp("lease_until", { withTimezone: true }),
  resumptions: integer("resumptions").notNull().default(0),
  isCancelRequested: boolean("is_cancel_requested").notNull().default(false),
  isPauseRequested: boolean("is_pause_requested").notNull().default(false),
  endReason: text("end_reason").notNull().default(""),
  createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
  endedAt: timestamp("ended_at", { withTimezone: true }),
});

export const ledger = pgTable(
  "ledger",
  {
    runId: text("run_id").notNull(),
    /** Slot: `<split>.<step>.<task>.<index>`. */
    slot: text("slot").notNull(),
    /** The role whose part of the rollout it is; empty = the whole, or the part of no role that the run names. */
    role: text("role").notNull().default(""),
    /** The version that was trained on it. */
    version: integer("version").notNull(),
    attempt: integer("attempt").notNull(),
    outcome: text("outcome").notNull(),
    sampleCount: integer("sample_count").notNull(),
    sampledTokens: integer("sampled_tokens").notNull(),
    /** Policy versions that sampled its tokens; null for a scripted policy. */
    lowestVersion: integer("lowest_version"),
    highestVersion: integer("highest_version"),
    reward: doublePrecision("reward").notNull(),
    advantage: doublePrecision("advantage").notNull(),
    /** Position of its scored episode in EPISODES. */
    sequence: bigint("sequence", { mode: "number" }).notNull(),
    stateDigest: text("state_digest").notNull(),
    /** Advantage of each turn's tokens, the episode's part included; null = `advantage` is that of every token. */
    turnAdvantages: jsonb("turn_advantages").$type<number[]>(),
    /** Advantage of each sampled token as float32, little-endian, sample by sample; null = none are finer than those of turns. */
    tokenAdvantages: bytea("token_advantages"),
    /** What the critic is to predict at each sampled token, in the same form; null = no critic was trained. */
    tokenReturns: bytea("token_returns"),
    /** Digests of what its model was shown, of all its tokens and of their log-probabilities; null in older rows. */
    promptDigest: text("prompt_digest"),
    tokensDigest: text("tokens_digest"),
    logprobsDigest: text("logprobs_digest"),
  },
  (table) => [primaryKey({ columns: [table.runId, table.slot, table.role] })],
);

/** What a row of `steps` holds beside what it had before there was a chain. */
export interface ChainColumns {
  readonly format: number;
  /** Digest of the row before; empty for the first. */
  readonly previous: string;
  readonly contentDigest: string;
  readonly rowDigest: string;
  readonly settings: string;
  readonly tokenizer: string;
  readonly arithmetic: string;
  /** Digest of the weights before and after the step. */
  readonly before: string;
  readonly after: string;
  /** SHA-256 of every file of the state that the commit wrote, the optimizer's among them where it was written. */
  readonly files: Readonly<Record<string, string>>;
  readonly leftOut: readonly {
    readonly slot: string;
    readonly attempt: number;
    readonly outcome: string;
    readonly why: string;
    readonly reason: string;
  }[];
}

export const steps = pgTable(
  "steps",
  {
    runId: text("run_id").notNull(),
    version: integer("version").notNull(),
    epoch: bigint("epoch", { mode: "number" }).notNull(),
    stateFolder: text("state_folder").notNull(),
    stateDigest: text("state_digest").notNull(),
    metrics: jsonb("metrics").$type<Record<string, number>>().notNull(),
    /** What went wrong in its rollouts; null = nothing did. */
    troubles: jsonb("troubles").$type<GatheredTroubles>(),
    committedAt: timestamp("committed_at", { withTimezone: true }).notNull().defaultNow(),
    /** The row as a link of the chain (libs/rl/src/ledger/chain.ts); null in rows that are older than the chain. */
    chain: jsonb("chain").$type<ChainColumns>(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.version] })],
);

/** What made the gradient of a policy in a step. */
export const gradients = pgTable(
  "gradients",
  {
    runId: text("run_id").notNull(),
    version: integer("version").notNull(),
    /** Empty = the run's own. */
    policy: text("policy").notNull().default(""),
    summary: jsonb("summary").$type<StepGradient>().notNull(),
    /** Bytes of the step's rows in `token_records`; 0 once they were removed. */
    bytes: bigint("bytes", { mode: "number" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.version, table.policy] })],
);

/** The trained tokens of a rollout, or of the part of it that a role played. */
export const tokenRecords = pgTable(
  "token_records",
  {
    runId: text("run_id").notNull(),
    slot: text("slot").notNull(),
    version: integer("version").notNull(),
    /** hone.ledger.v1.TokenRecord. */
    record: bytea("record").notNull(),
    /** As in `ledger`. */
    role: text("role").notNull().default(""),
  },
  (table) => [primaryKey({ columns: [table.runId, table.slot, table.role] })],
);

export const evaluations = pgTable(
  "evaluations",
  {
    runId: text("run_id").notNull(),
    version: integer("version").notNull(),
    mode: text("mode").notNull(),
    episodes: integer("episodes").notNull(),
    metrics: jsonb("metrics").$type<Record<string, number>>().notNull(),
    /** What went wrong in its rollouts; null = nothing did. */
    troubles: jsonb("troubles").$type<GatheredTroubles>(),
    finishedAt: timestamp("finished_at", { withTimezone: true }).notNull().defaultNow(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.version, table.mode] })],
);

export const visits = pgTable(
  "visits",
  {
    runId: text("run_id").notNull(),
    step: integer("step").notNull(),
    /** Index within the step's batch. */
    task: integer("task").notNull(),
    taskId: text("task_id").notNull(),
    /** Share of the task's rollouts that passed; null = none of them counts. */
    success: doublePrecision("success"),
    /** Where the next step begins to look for tasks. */
    nextCursor: bigint("next_cursor", { mode: "number" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.step, table.task] })],
);

export const groups = pgTable(
  "groups",
  {
    runId: text("run_id").notNull(),
    /** Step that asked for it. */
    step: integer("step").notNull(),
    /** Index among the groups that this step asked for. */
    task: integer("task").notNull(),
    /** Position of its task in the order of the training split. */
    cursor: bigint("cursor", { mode: "number" }).notNull(),
    /** Position from which no task had been asked for when this group was. */
    nextCursor: bigint("next_cursor", { mode: "number" }).notNull(),
    /** Step that trained it; null while none has. */
    trainedBy: integer("trained_by"),
    /** Position in EPISODES of its last scored rollout; null while no step has trained it. */
    completeAt: bigint("complete_at", { mode: "number" }),
    /** Whether it had grown too old, so that another group was asked for in its place. */
    isGivenUp: boolean("is_given_up").notNull().default(false),
  },
  (table) => [primaryKey({ columns: [table.runId, table.step, table.task] })],
);
