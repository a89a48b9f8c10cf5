/**
 * Tables of the trainer, in its schema "trainer". The SQL that makes them is in migrations.ts.
 *
 *   runs          one row per run: its file, its owner, the last committed version
 *   ledger        one row per trained rollout, or per role's part of one; unique, so none is trained twice
 *   steps         one row per committed version, with its metrics
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
  },
  (table) => [primaryKey({ columns: [table.runId, table.slot, table.role] })],
);

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
  },
  (table) => [primaryKey({ columns: [table.runId, table.version] })],
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
