/**
 * Simulates the steps of a run: rollouts on engines and tools, training, publication. It follows the rules by which the trainer
 * asks for groups and takes them (services/trainer/src/domain/groups/).
 *
 * P1: Before a step the trainer asks for groups until those of the step and those that are played ahead are out, but never for more
 *     than the remaining steps train. Ahead is one step in the first two steps; twice as much, up to maxStaleness steps, after a step
 *     at whose end too few groups were complete; and less, by a quarter of what was ready beyond the next step, after one at whose end
 *     those of a further step were.
 * P2: A step trains the groups that are complete first. Synchronous runs may play more groups and rollouts than they train; what
 *     is not needed ends.
 * P3: When a version is published, groups whose first token has become too old for the next step are played again.
 * P4: The replica with the fewest sequences gets a rollout, and keeps it.
 * P5: Rollouts for which agent-rollout has no place wait in the order in which they were asked for.
 */

import { Random } from "@hone/core";
import TinyQueue from "tinyqueue";
import { type EngineSpeed, type Sequence, SharedEngine } from "./shared-engine.ts";

/** What is played. Each turn of a rollout generates tokens and then waits for a tool or an environment. */
export interface Workload {
  readonly groupsPerStep: number;
  readonly groupSize: number;
  readonly turns: (random: Random) => number;
  /** Tokens of a turn, those that it reads counted by the time that they take. */
  readonly tokens: (random: Random) => number;
  readonly toolMs: (random: Random) => number;
  /** A rollout ends when its tools have taken so long together (`rollout.deadlineMs`). */
  readonly deadlineMs: number;
  /** Rollouts that are played at once (`HONE_ROLLOUT_CONCURRENCY`, over all processes). @default all that are asked for */
  readonly concurrency?: number;
}

/** What it is played and trained on. */
export interface Cluster {
  readonly replicas: number;
  readonly engine: EngineSpeed;
  /** Time of a step's training and commit. */
  readonly trainMs: number;
  /** How long a replica generates nothing when a version is published. */
  readonly publishMs: number;
  /** Share of the engines' speed that is left while a step trains: 1 on GPUs of their own, 0 on the trainer's. */
  readonly shareWhileTraining: number;
  /** Share of the trainer's speed that is left while anything is generated, likewise. */
  readonly trainShareWhilePlaying: number;
}

export interface Schedule {
  readonly maxStaleness: number;
  /** Groups, and rollouts of each group, that a synchronous step starts beyond what it trains. @default 0 */
  readonly spareGroups?: number;
  readonly spareRollouts?: number;
}

export interface Simulated {
  readonly episodesPerSecond: number;
  /** Share of the time in which the trainer waits for groups. */
  readonly trainerIdle: number;
  /** Share of the time in which a replica has nothing to generate, over all of them. */
  readonly engineIdle: number;
  /** Versions between a group's first token and the version that is trained. */
  readonly staleness: number;
  /** Groups that were given up because they were too old, for each that was trained. */
  readonly givenUp: number;
}

interface Group {
  readonly rollouts: Rollout[];
  firstVersion: number | undefined;
  missing: number;
}

interface Rollout {
  readonly group: Group;
  /** Undefined while it waits for a place. */
  engine: SharedEngine | undefined;
  turnsLeft: number;
  /** Time that is left for its tools. */
  msLeft: number;
  sequence: Sequence | undefined;
  isOver: boolean;
}

/** How long is simulated. */
export interface Simulation {
  /** Steps that are not counted, because the first ones find an empty pipeline. */
  readonly warmSteps: number;
  /** Steps that are counted; the last one ends the run. */
  readonly steps: number;
  readonly seed: number;
}

export function simulate(
  workload: Workload,
  cluster: Cluster,
  schedule: Schedule,
  simulation: Simulation,
): Simulated {
  return new Pipeline(workload, cluster, schedule, simulation).run();
}

class Pipeline {
  readonly #workload: Workload;
  readonly #cluster: Cluster;
  readonly #schedule: Schedule;
  readonly #simulation: Simulation;
  readonly #random: Random;
  readonly #engines: readonly SharedEngine[];
  /** Ends of tools and of publications. */
  readonly #timers = new TinyQueue<{ readonly atMs: number; readonly run: () => void }>(
    [],
    (a, b) => a.atMs - b.atMs,
  );
  readonly #open = new Set<Group>();
  #complete: Group[] = [];
  /** Rollouts that wait for a place (P5). */
  #waiting: Rollout[] = [];
  #playing = 0;
  #nowMs = 0;
  #version = 0;
  /** What is left of the step's training, at the time when its speed changed last. */
  #training: { readonly leftMs: number; readonly sinceMs: number; readonly speed: number } | undefined;
  #isPublishing = false;
  #waitingSince: number | undefined = 0;
  #waitedMs = 0;
  /** Groups that are played beyond those of a step (P1). */
  #ahead: number;
  #ages = 0;
  #trained = 0;
  #givenUp = 0;

  constructor(workload: Workload, cluster: Cluster, schedule: Schedule, simulation: Simulation) {
    this.#workload = workload;
    this.#cluster = cluster;
    this.#schedule = schedule;
    this.#simulation = simulation;
    this.#ahead = Math.min(1, schedule.maxStaleness) * workload.groupsPerStep;
    this.#random = new Random(simulation.seed);
    this.#engines = Array.from({ length: cluster.replicas }, () => new SharedEngine(cluster.engine));
  }

  run(): Simulated {
    const { warmSteps, steps } = this.#simulation;
    this.#beginStep();
    this.#until(warmSteps);
    const before = this.#totals();
    this.#until(warmSteps + steps);
    const after = this.#totals();
    const ms = after.ms - before.ms;
    const groups = after.groups - before.groups;
    return {
      episodesPerSecond: (1_000 * groups * this.#workload.groupSize) / ms,
      trainerIdle: (after.waitedMs - before.waitedMs) / ms,
      engineIdle: (after.idleMs - before.idleMs) / (ms * this.#engines.length),
      staleness: (after.ages - before.ages) / groups,
      givenUp: (after.givenUp - before.givenUp) / groups,
    };
  }

  /** What there was until now: time, waits of the trainer, idle time of all engines, groups, and the sum of their ages. */
  #totals() {
    return {
      ms: this.#nowMs,
      waitedMs: this.#waitedMs,
      idleMs: this.#engines.reduce((sum, engine) => sum + engine.idleMs(this.#nowMs), 0),
      groups: this.#trained,
      ages: this.#ages,
      givenUp: this.#givenUp,
    };
  }

  /** Lets time pass until a version is published. */
  #until(version: number): void {
    while (this.#version < version) {
      const engine = this.#engines.reduce((a, b) => (b.nextDoneMs() < a.nextDoneMs() ? b : a));
      const doneMs = engine.nextDoneMs();
      const timer = this.#timers.peek();
      const timerMs = timer?.atMs ?? Number.POSITIVE_INFINITY;
      const trainedMs = this.#trainedMs();
      this.#nowMs = Math.min(doneMs, timerMs, trainedMs);
      if (this.#nowMs === Number.POSITIVE_INFINITY) throw new Error("nothing is left to happen");
      if (trainedMs === this.#nowMs) this.#publish();
      else if (timerMs === this.#nowMs) this.#timers.pop()!.run();
      else engine.finishFirst(doneMs);
      this.#paceTraining();
    }
  }

  /** When the step's training ends, at its present speed. */
  #trainedMs(): number {
    const training = this.#training;
    return training === undefined
      ? Number.POSITIVE_INFINITY
      : training.sinceMs + training.leftMs / training.speed;
  }

  /** Gives training the speed that what is generated leaves to it. */
  #paceTraining(): void {
    const training = this.#training;
    if (training === undefined) return;
    const isPlaying = this.#engines.some((engine) => engine.running > 0);
    const speed = isPlaying ? this.#cluster.trainShareWhilePlaying : 1;
    if (speed === training.speed) return;
    const leftMs = training.leftMs - (this.#nowMs - training.sinceMs) * training.speed;
    this.#training = { leftMs, sinceMs: this.#nowMs, speed };
  }

  #after(ms: number, run: () => void): void {
    this.#timers.push({ atMs: this.#nowMs + ms, run });
  }

  /** P1 */
  #ask(): void {
    const { spareGroups = 0 } = this.#schedule;
    const { warmSteps, steps } = this.#simulation;
    const { groupsPerStep } = this.#workload;
    const left = (warmSteps + steps - this.#version) * groupsPerStep;
    const wanted = left === 0 ? 0 : Math.min(groupsPerStep + this.#ahead, left) + spareGroups;
    while (this.#open.size + this.#complete.length < wanted) this.#startGroup();
  }

  /** Begins the step after the version that was published. */
  #beginStep(): void {
    const { groupsPerStep } = this.#workload;
    const most = this.#schedule.maxStaleness * groupsPerStep;
    const ready = this.#complete.length;
    if (this.#version >= 2 && most > groupsPerStep) {
      if (ready < groupsPerStep) this.#ahead = Math.min(most, 2 * this.#ahead);
      else if (ready >= 2 * groupsPerStep)
        this.#ahead = Math.max(groupsPerStep, this.#ahead - Math.ceil((ready - groupsPerStep) / 4));
    }
    this.#ask();
  }

  #startGroup(): void {
    const { groupSize, turns, deadlineMs } = this.#workload;
    const group: Group = { rollouts: [], firstVersion: undefined, missing: groupSize };
    this.#open.add(group);
    for (let i = 0; i < groupSize + (this.#schedule.spareRollouts ?? 0); i++) {
      const rollout: Rollout = {
        group,
        engine: undefined,
        turnsLeft: turns(this.#random),
        msLeft: deadlineMs,
        sequence: undefined,
        isOver: false,
      };
      group.rollouts.push(rollout);
      this.#waiting.push(rollout);
    }
    this.#fillPlaces();
  }

  /** P5 */
  #fillPlaces(): void {
    const { concurrency = Number.POSITIVE_INFINITY } = this.#workload;
    while (this.#playing < concurrency) {
      const rollout = this.#waiting.shift();
      if (rollout === undefined) return;
      if (rollout.isOver) continue;
      this.#playing++;
      const engine = this.#engines.reduce((a, b) => (b.running < a.running ? b : a)); // P4
      rollout.engine = engine;
      this.#turn(rollout, engine);
    }
  }

  /** Ends a rollout, wherever it is. */
  #stop(rollout: Rollout): void {
    if (rollout.isOver) return;
    rollout.isOver = true;
    if (rollout.sequence !== undefined) rollout.engine?.remove(this.#nowMs, rollout.sequence);
    if (rollout.engine !== undefined) this.#playing--;
  }

  #turn(rollout: Rollout, engine: SharedEngine): void {
    if (rollout.isOver) return;
    rollout.group.firstVersion ??= this.#version;
    rollout.sequence = engine.add(this.#nowMs, this.#workload.tokens(this.#random), () => {
      rollout.sequence = undefined;
      const toolMs = Math.min(rollout.msLeft, this.#workload.toolMs(this.#random));
      this.#after(toolMs, () => {
        if (rollout.isOver) return;
        rollout.turnsLeft--;
        rollout.msLeft -= toolMs;
        if (rollout.turnsLeft > 0 && rollout.msLeft > 0) this.#turn(rollout, engine);
        else this.#finish(rollout);
      });
    });
  }

  #finish(rollout: Rollout): void {
    const { group } = rollout;
    this.#stop(rollout);
    group.missing--;
    if (group.missing === 0) {
      this.#end(group);
      this.#complete.push(group);
      this.#trainIfReady();
    }
    this.#fillPlaces();
  }

  /** Ends what a group still plays. */
  #end(group: Group): void {
    this.#open.delete(group);
    for (const rollout of group.rollouts) this.#stop(rollout);
  }

  #trainIfReady(): void {
    const { groupsPerStep } = this.#workload;
    if (this.#waitingSince === undefined || this.#complete.length < groupsPerStep) return;
    this.#waitedMs += this.#nowMs - this.#waitingSince;
    this.#waitingSince = undefined;
    const taken = this.#complete.splice(0, groupsPerStep); // P2
    this.#trained += taken.length;
    for (const { firstVersion } of taken) this.#ages += this.#version - firstVersion!;
    if (this.#schedule.maxStaleness === 0) this.#dropOthers();
    this.#training = { leftMs: this.#cluster.trainMs, sinceMs: this.#nowMs, speed: 1 };
    this.#paceTraining();
    this.#shareEngines();
  }

  #dropOthers(): void {
    for (const group of this.#open) this.#end(group);
    this.#complete = [];
  }

  #publish(): void {
    this.#version++;
    const isTooOld = ({ firstVersion }: Group) =>
      firstVersion !== undefined && this.#version - firstVersion > this.#schedule.maxStaleness;
    for (const group of [...this.#open].filter(isTooOld)) {
      this.#end(group); // P3
      this.#givenUp++;
    }
    const kept = this.#complete.filter((group) => !isTooOld(group));
    this.#givenUp += this.#complete.length - kept.length;
    this.#complete = kept;
    this.#training = undefined;
    this.#isPublishing = true;
    this.#shareEngines();
    this.#after(this.#cluster.publishMs, () => {
      this.#isPublishing = false;
      this.#shareEngines();
    });
    this.#waitingSince = this.#nowMs;
    this.#beginStep();
    this.#fillPlaces();
    this.#trainIfReady();
  }

  #shareEngines(): void {
    const whileTraining = this.#training !== undefined ? this.#cluster.shareWhileTraining : 1;
    const share = this.#isPublishing ? 0 : whileTraining;
    for (const engine of this.#engines) engine.setShare(this.#nowMs, share);
  }
}
