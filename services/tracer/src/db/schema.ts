/** The tables of the tracer for drizzle. `migrations.ts` creates them; both files must agree. */

import {
  bigint,
  bigserial,
  boolean,
  customType,
  doublePrecision,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
} from "@hone/storage";
import type { Figures, Refusal } from "../domain/ports.ts";
import type { RunProgress } from "../domain/run-progress.ts";
import type { RunTroubles } from "../domain/run-troubles.ts";

const tsvector = customType<{ data: string }>({ dataType: () => "tsvector" });
const bytea = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => "bytea" });

/** Unix milliseconds, as on the page and on the wire. */
const timeMs = (name: string) => bigint(name, { mode: "number" });

/** One row per run. */
export const runs = pgTable("runs", {
  runId: text("run_id").primaryKey(),
  /** The resolved run file. It is a text, as jsonb cannot hold every string that JSON can. */
  configJson: text("config_json"),
  acceptedAtMs: timeMs("accepted_at_ms"),
  /** Position of its first event in the stream; orders runs whose acceptance was not seen. */
  firstSequence: bigint("first_sequence", { mode: "number" }).notNull(),
  phase: text("phase").notNull().default("waiting"),
  step: integer("step").notNull().default(0),
  totalSteps: integer("total_steps").notNull().default(0),
  version: integer("version").notNull().default(0),
  waitingFor: text("waiting_for").notNull().default(""),
  /** Who must act for the run to continue; empty = it waits for nothing. */
  waitingOwner: text("waiting_owner").notNull().default(""),
  waitingSinceMs: timeMs("waiting_since_ms"),
  progress: jsonb("progress").$type<RunProgress>(),
  /** What went wrong in the most recent rollouts; null = nothing did. */
  troubles: jsonb("troubles").$type<RunTroubles>(),
  endedAtMs: timeMs("ended_at_ms"),
  endReason: text("end_reason").notNull().default(""),
  checkpoint: text("checkpoint").notNull().default(""),
  /** How often the run was resumed after a failure. */
  resumption: integer("resumption").notNull().default(0),
  /** Number of rollouts that were removed from the bus before this service had read them. */
  unreadRollouts: bigint("unread_rollouts", { mode: "number" }).notNull().default(0),
  /** Position of the event that set progress and step; older events change nothing. */
  progressSequence: bigint("progress_sequence", { mode: "number" }).notNull().default(0),
  /** Revision in RUN_STATE that set phase, version and wait; older ones change nothing. */
  stateRevision: bigint("state_revision", { mode: "number" }).notNull().default(0),
  /** Grows whenever anything of the run is written, by which open pages notice changes. */
  revision: bigint("revision", { mode: "number" }).notNull().default(0),
});

/** One row per request that never became a run. */
export const refusals = pgTable("refusals", {
  requestSequence: bigint("request_sequence", { mode: "number" }).primaryKey(),
  timeMs: timeMs("time_ms").notNull(),
  problems: jsonb("problems").$type<Refusal["problems"]>().notNull(),
});

/** One row per completed step. */
export const steps = pgTable(
  "steps",
  {
    runId: text("run_id").notNull(),
    step: integer("step").notNull(),
    version: integer("version").notNull(),
    timeMs: timeMs("time_ms").notNull(),
    metrics: jsonb("metrics").$type<Figures>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.step] })],
);

/** One row per evaluated version and mode. */
export const evaluations = pgTable(
  "evaluations",
  {
    runId: text("run_id").notNull(),
    version: integer("version").notNull(),
    mode: text("mode").notNull(),
    episodes: integer("episodes").notNull(),
    timeMs: timeMs("time_ms").notNull(),
    metrics: jsonb("metrics").$type<Figures>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.version, table.mode] })],
);

/** One row per rollout: the first scored attempt. */
export const rollouts = pgTable(
  "rollouts",
  {
    /** Grows in the order of storing, in which lists and retention proceed. */
    id: bigserial("id", { mode: "number" }),
    runId: text("run_id").notNull(),
    /** `<split>.<step>.<task>.<index>` */
    slot: text("slot").notNull(),
    split: text("split").notNull(),
    step: integer("step").notNull(),
    task: integer("task").notNull(),
    index: integer("index").notNull(),
    /** How often its run had been resumed when it was requested; a rollout of a later resumption replaces it. */
    resumption: integer("resumption").notNull().default(0),
    attempt: integer("attempt").notNull(),
    outcome: text("outcome").notNull(),
    reason: text("reason").notNull(),
    /** Null where the outcome excludes the rollout from training. */
    reward: doublePrecision("reward"),
    /** The agent's own `success`, where it reports one. */
    success: doublePrecision("success"),
    turns: integer("turns").notNull(),
    /** Number of tokens that the model sampled. */
    sampledTokens: integer("sampled_tokens").notNull(),
    /** Number of all tokens of its samples. */
    totalTokens: integer("total_tokens").notNull(),
    durationMs: doublePrecision("duration_ms").notNull(),
    taskId: text("task_id").notNull(),
    /** Empty where the rollout was not traced. */
    traceId: text("trace_id").notNull(),
    storedAtMs: timeMs("stored_at_ms").notNull(),
    /** Whether retention removed spans of its trace. */
    spansRemoved: boolean("spans_removed").notNull().default(false),
    /** Encoded hone.rollout.v1.ScoredEpisode. */
    scored: bytea("scored").notNull(),
    /** Its words by who wrote them; null = it was stored by a release without the search, and gets them soon. */
    words: tsvector("words"),
  },
  (table) => [primaryKey({ columns: [table.runId, table.slot] })],
);

/** How many rollouts of a step retention removed. */
export const removals = pgTable(
  "removals",
  {
    runId: text("run_id").notNull(),
    split: text("split").notNull(),
    step: integer("step").notNull(),
    rollouts: bigint("rollouts", { mode: "number" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.split, table.step] })],
);

/** Training figures of a rollout, from its `train` span. They come separately from the rollout and may come first. */
export const trainings = pgTable(
  "trainings",
  {
    runId: text("run_id").notNull(),
    slot: text("slot").notNull(),
    advantage: doublePrecision("advantage").notNull(),
    figures: jsonb("figures").$type<Figures>().notNull(),
    storedAtMs: timeMs("stored_at_ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.slot] })],
);

/** Spans of one trace that were written together. */
export const spanPieces = pgTable("span_pieces", {
  id: bigserial("id", { mode: "number" }).primaryKey(),
  traceId: text("trace_id").notNull(),
  spanCount: integer("span_count").notNull(),
  /** Encoded opentelemetry.proto.trace.v1.TracesData. */
  data: bytea("data").notNull(),
});

/** What people wrote about rollouts. Notes stay when their rollout is removed. */
export const notes = pgTable("notes", {
  id: bigserial("id", { mode: "number" }).primaryKey(),
  runId: text("run_id").notNull(),
  slot: text("slot").notNull(),
  /** Index of the turn that it is about; null = the whole rollout. */
  turn: integer("turn"),
  /** Empty = not said. */
  author: text("author").notNull(),
  text: text("text").notNull(),
  /** Null = none. */
  score: doublePrecision("score"),
  createdAtMs: timeMs("created_at_ms").notNull(),
});
