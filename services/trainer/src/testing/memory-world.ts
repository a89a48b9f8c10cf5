/**
 * The world around a run, in memory: database, bus and agents. Every effect on it goes through `point`, where a test may let
 * the process "die".
 *
 * For tests of the domain only. The guarantees of the database (epoch and version are checked in one transaction) are
 * tested against PostgreSQL in db/.
 */

import { type Slot, slotKey } from "@hone/core";
import type { Rollout } from "@hone/rl";
import { contextOfTraceparent } from "@hone/telemetry";
import type { GroupJudges } from "../domain/credit/group-judges.ts";
import type { RunEvent, RunEvents } from "../domain/report/run-event.ts";
import type { RunStateBoard, RunStatus } from "../domain/report/run-status.ts";
import type { Pipeline } from "../domain/rollouts/find-cause-of-wait.ts";
import type { Job, JobQueue, Task, TaskRequest, TaskSource } from "../domain/rollouts/jobs.ts";
import type { EpisodeRoom, ScoredRollout, ScoredRollouts } from "../domain/rollouts/scored-rollout.ts";
import type { Recovery, RunRecord } from "../domain/run/run-record.ts";
import type {
  AskedGroups,
  Commit,
  EvaluationRecord,
  GroupRow,
  KeptGroups,
  RunEnding,
  RunLedger,
  StepRecord,
  TakenGroup,
  TaskVisitRow,
  TrainedRollout,
} from "../domain/step/ledger.ts";
import { playedRollout } from "./memory-rollout.ts";

const EVAL_SIZE = 3;
/** The number of training tasks: few, so that tasks repeat. */
const NUM_TASKS = 5;

export class MemoryWorld implements RunLedger, ScoredRollouts, TaskSource {
  /** Called with the name of each effect, before and after it; a throw is the death of the process. */
  point: (name: string) => void = () => undefined;
  run: RunRecord;
  readonly ledger = new Map<string, number>();
  readonly steps = new Map<number, StepRecord>();
  readonly records: EvaluationRecord[] = [];
  readonly taskVisits: TaskVisitRow[] = [];
  /** The groups of an asynchronous run, in the order in which they were asked for. */
  readonly groupRows = new Map<string, GroupRow>();
  /** Task of each slot that was executed. */
  readonly tasks = new Map<string, string>();
  /** The rows of every dataset file. */
  rows: readonly Record<string, unknown>[] = [];
  readonly stream: ScoredRollout[] = [];
  readonly events: Array<{ event: RunEvent; messageId: string | undefined }> = [];
  /** Size limit of the stream of episodes. A rollout that finds no room is held back and may succeed when asked for again. */
  maxBytes: number | undefined;
  /** Bytes that an episode takes, finished and scored. */
  bytesOf: (slot: Slot) => number = () => 2;
  status: RunStatus | undefined;
  ending: RunEnding | undefined;
  /** How often each slot was executed. */
  readonly executions = new Map<string, number>();
  readonly jobs: JobQueue = {
    publish: async (run, job) => this.#execute(run, job),
    waitingJobs: async () => 0,
    jobsOf: async () => 0,
    runs: async () => [],
    purge: async () => this.point("purge"),
  };
  readonly board: RunStateBoard = { publish: async (status) => this.#publishStatus(status) };
  /** How rollouts fail; undefined = they complete. */
  failureOf: (slot: Slot) => Pick<Rollout, "outcome" | "reason" | "toolUses"> | undefined = () => undefined;
  /** How long an attempt takes, milliseconds. */
  durationOf: (job: Job) => number = () => 1;
  /** The version whose publication a rollout waits for before it is stored. */
  storedAt: (slot: Slot) => number = () => 0;
  /** Here nothing is ever waited for except room in the stream. */
  readonly pipeline: Pipeline = {
    look: async () => ({
      kind: "seen",
      silent: [],
      jobs: 0,
      jobsPending: 0,
      jobsInWork: 0,
      unscored: 0,
      episodes: this.#room(),
      replicas: [],
      open: [],
    }),
  };
  /** No group is compared here. */
  readonly groupJudges: GroupJudges = {
    compare: async () => ({ kind: "failed", reason: "nobody compares" }),
  };
  readonly eventSink: RunEvents = {
    publish: async (_runId, event, messageId) => this.#publishEvent(event, messageId),
  };
  /** The rollouts of each version with reward and advantage, as the ledger's rows have them. */
  readonly #worth = new Map<number, TrainedRollout[]>();
  readonly #digests = new Map<number, string>();
  readonly #jobIds = new Set<string>();
  #nextCursor = 0;
  #decidedAt = 0;
  /** Rollouts that are done and not stored yet. */
  #late: Omit<ScoredRollout, "sequence">[] = [];
  #arrival = Promise.withResolvers<void>();

  constructor(run: RunRecord) {
    this.run = run;
  }

  /** Lets a failed run go on, as the registry does. */
  resume(): void {
    this.ending = undefined;
    this.run = { ...this.run, resumptions: this.run.resumptions + 1 };
  }

  /** A new owner takes the run over: it knows only what is stored. */
  takeOver(): RunRecord {
    this.run = { ...this.run, epoch: this.run.epoch + 1 };
    return this.run;
  }

  async renew() {
    return this.run;
  }

  async load(): Promise<RunRecord> {
    return this.run;
  }

  async commit(commit: Commit): Promise<boolean> {
    this.point("before commit");
    const { epoch, version, stateFolder, stateDigest, stateFiles, arithmetic, nextSequence } = commit;
    const previous = commit.isFirst ? undefined : version - 1;
    if (epoch !== this.run.epoch || this.run.version !== previous) return false;
    const worth = commit.trained.map(({ rollout, ...credited }) => ({
      slot: rollout.slot,
      role: rollout.role,
      ...credited,
    }));
    this.#worth.set(version, worth);
    this.#digests.set(version, stateDigest);
    for (const { rollout } of commit.trained) {
      const key = `${slotKey(rollout.slot)}${rollout.role === undefined ? "" : `/${rollout.role}`}`;
      if (this.ledger.has(key)) throw new Error(`${key} is trained twice`);
      this.ledger.set(key, version);
    }
    this.taskVisits.push(...(commit.visits ?? []));
    for (const group of commit.taken ?? []) {
      this.#changeGroup(group, { trainedBy: version });
      this.#decidedAt = Math.max(this.#decidedAt, group.completeAt);
    }
    this.steps.set(version, { metrics: commit.metrics, troubles: commit.troubles });
    const recovery = commit.isWhole
      ? { folder: stateFolder, digest: stateDigest, files: stateFiles, version, warmUpdates: 0 }
      : this.run.recovery;
    this.run = {
      ...this.run,
      version,
      stateFolder,
      stateDigest,
      stateFiles,
      arithmetic,
      recovery,
      nextSequence,
    };
    this.point("after commit");
    return true;
  }

  async askGroups({ epoch, step, asked, givenUp, nextCursor }: AskedGroups): Promise<boolean> {
    this.point("before groups");
    if (epoch !== this.run.epoch || this.run.version !== step - 1) return false;
    for (const group of givenUp) this.#changeGroup(group, { isGivenUp: true });
    for (const { task, cursor } of asked) {
      this.groupRows.set(`${step}.${task}`, { step, task, cursor, trainedBy: undefined, isGivenUp: false });
    }
    this.#nextCursor = nextCursor;
    this.point("after groups");
    return true;
  }

  async groups(): Promise<KeptGroups> {
    const groups = [...this.groupRows.values()];
    return { groups, nextCursor: this.#nextCursor, decidedAt: this.#decidedAt };
  }

  async trained(_runId: string, version: number): Promise<TrainedRollout[]> {
    return this.#worth.get(version) ?? [];
  }

  async visits(): Promise<TaskVisitRow[]> {
    return this.taskVisits;
  }

  async recordRecovery(
    _runId: string,
    epoch: number,
    recovery: Recovery,
    nextSequence: number,
  ): Promise<boolean> {
    this.point("before recovery row");
    if (epoch !== this.run.epoch || this.run.version !== recovery.version) return false;
    const { folder, digest, files, version } = recovery;
    const state =
      version === undefined ? {} : { stateFolder: folder, stateDigest: digest, stateFiles: files };
    this.run = { ...this.run, recovery, ...state, nextSequence };
    this.point("after recovery row");
    return true;
  }

  async recordEvaluation(
    _runId: string,
    epoch: number,
    records: readonly EvaluationRecord[],
    nextSequence: number,
  ): Promise<boolean> {
    this.point("before evaluation row");
    if (epoch !== this.run.epoch) return false;
    this.records.push(...records);
    this.run = { ...this.run, nextSequence };
    this.point("after evaluation row");
    return true;
  }

  async evaluations(_runId: string, version: number): Promise<EvaluationRecord[]> {
    return this.records.filter((record) => record.version === version);
  }

  async stateDigest(_runId: string, version: number): Promise<string | undefined> {
    return this.#digests.get(version);
  }

  async step(_runId: string, version: number): Promise<StepRecord | undefined> {
    return this.steps.get(version);
  }

  async end(_runId: string, epoch: number, ending: RunEnding): Promise<boolean> {
    this.point("before end");
    if (epoch !== this.run.epoch) return false;
    this.ending = ending;
    return true;
  }

  async *read(_runId: string, fromSequence: number, signal: AbortSignal): AsyncGenerator<ScoredRollout> {
    for (let next = fromSequence; ; ) {
      const found = this.stream.find(({ sequence }) => sequence >= next);
      if (found !== undefined) {
        next = found.sequence + 1;
        yield found;
        continue;
      }
      if (signal.aborted) return;
      const stopped = Promise.withResolvers<void>();
      const onAbort = () => stopped.resolve();
      signal.addEventListener("abort", onAbort, { once: true });
      await Promise.race([this.#arrival.promise, stopped.promise]);
      signal.removeEventListener("abort", onAbort);
    }
  }

  async room(): Promise<EpisodeRoom> {
    this.point("room");
    return this.#room();
  }

  async runs(): Promise<string[]> {
    return this.stream.length === 0 ? [] : [this.run.runId];
  }

  async lastSequence(): Promise<number> {
    return this.stream.at(-1)?.sequence ?? 0;
  }

  /** Really drops the episodes, after checking that the run's row needs none of them. */
  async purgeBelow(_runId: string, sequence: number): Promise<void> {
    if (this.ending === undefined && sequence > this.run.nextSequence)
      throw new Error(`${sequence} is purged, ${this.run.nextSequence} is needed`);
    this.stream.splice(0, this.stream.findLastIndex((scored) => scored.sequence < sequence) + 1);
  }

  async batch(request: TaskRequest): Promise<{ tasks: Task[]; size: number }> {
    if (this.rows.length > 0 && request.sourceJson.includes("jsonl")) return this.#rowBatch(request);
    const tasks = Array.from({ length: request.count }, (_, i) => ({
      id: `task-${(request.cursor + i) % NUM_TASKS}`,
      environment: "e",
      environmentSeed: BigInt(request.cursor + i),
      environmentConfigJson: "",
      rowJson: "",
      part: "",
    }));
    return { tasks, size: EVAL_SIZE };
  }

  #changeGroup({ step, task }: TakenGroup, change: Partial<GroupRow>): void {
    const key = `${step}.${task}`;
    const row = this.groupRows.get(key);
    if (row === undefined || row.trainedBy !== undefined || row.isGivenUp)
      throw new Error(`${key} is not open`);
    this.groupRows.set(key, { ...row, ...change });
  }

  #room(): EpisodeRoom {
    const { maxBytes, run } = this;
    const bytes = this.stream.reduce((sum, scored) => sum + scored.bytes, 0);
    return {
      bytes,
      maxBytes,
      isFull: maxBytes !== undefined && bytes >= 0.8 * maxBytes,
      firstSequence: this.stream[0]?.sequence ?? run.nextSequence,
      runs: this.stream.length === 0 ? [] : [run.runId],
    };
  }

  #rowBatch({ cursor, count }: TaskRequest): { tasks: Task[]; size: number } {
    const tasks = this.rows.slice(cursor, cursor + count).map((row, i) => ({
      id: `rows.jsonl:${cursor + i + 1}`,
      environment: "",
      environmentSeed: 0n,
      environmentConfigJson: "",
      rowJson: JSON.stringify(row),
      part: "",
    }));
    return { tasks, size: this.rows.length };
  }

  #publishEvent(event: RunEvent, messageId: string | undefined): void {
    if (messageId !== undefined && this.events.some((known) => known.messageId === messageId)) return;
    if (event.kind !== "progress" && event.kind !== "warm-start") this.events.push({ event, messageId });
  }

  #publishStatus(status: RunStatus): boolean {
    this.point("before state");
    if (this.status !== undefined && this.status.epoch > status.epoch) return false;
    this.status = status;
    this.#late = this.#late.filter((late) => !this.#store(late));
    this.point("after state");
    return true;
  }

  /** Executes a job at once, by its seeds; the result is in the stream before `publish` returns, unless `storedAt` delays it. */
  #execute(run: RunRecord, job: Job): boolean {
    this.point("before job");
    const key = slotKey(job.slot);
    const jobId = `${key}~${run.resumptions}`;
    if (this.#jobIds.has(jobId)) return false;
    const bytes = this.bytesOf(job.slot);
    if (this.#room().bytes + bytes > (this.maxBytes ?? Number.POSITIVE_INFINITY)) return true;
    this.#jobIds.add(jobId);
    this.executions.set(key, (this.executions.get(key) ?? 0) + 1);
    this.tasks.set(key, job.task.id);
    const made: Omit<ScoredRollout, "sequence"> = {
      ...playedRollout(run, job),
      durationMs: this.durationOf(job),
      ...this.failureOf(job.slot),
      bytes,
      resumption: run.resumptions,
      trace: contextOfTraceparent(undefined),
    };
    if (!this.#store(made)) this.#late.push(made);
    this.point("after job");
    return true;
  }

  /** @returns false where it is too early to store the rollout. */
  #store(made: Omit<ScoredRollout, "sequence">): boolean {
    if (this.storedAt(made.slot) > (this.status?.version ?? 0)) return false;
    const sequence = (this.stream.at(-1)?.sequence ?? this.run.nextSequence - 1) + 1;
    this.stream.push({ ...made, sequence });
    this.#arrival.resolve();
    this.#arrival = Promise.withResolvers<void>();
    return true;
  }
}
