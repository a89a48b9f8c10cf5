/**
 * How much of the time the replicas of inference-gateway had nothing to generate.
 *
 * Each replica reports every few seconds, and whenever it has loaded a version, for how long it has run and for how long it was
 * busy. The share of a step comes from the differences to its report of an earlier step, so over many steps no time is left out
 * or counted twice, although a single short step may be a report behind.
 */

/** What a replica reported last; milliseconds since its engine was started. */
export interface ReplicaTime {
  readonly replica: string;
  readonly upMs: number;
  /** The part of `upMs` in which at least one generation was open. */
  readonly busyMs: number;
}

/** Reads the reports of the replicas that serve a run. Never fails, and settles within a second; undefined = it could not read them. */
export type ReplicaTimes = (
  runId: string,
  signal: AbortSignal,
) => Promise<readonly ReplicaTime[] | undefined>;

export class EngineIdle {
  readonly #read: () => ReturnType<ReplicaTimes>;
  #last: ReadonlyMap<string, ReplicaTime> = new Map();

  constructor(read: () => ReturnType<ReplicaTimes>) {
    this.#read = read;
  }

  /**
   * @returns the share of the time since the last call in which the replicas idled, 0 to 1; undefined where no replica has
   *   reported both then and since.
   */
  async measure(): Promise<number | undefined> {
    const times = await this.#read();
    if (times === undefined) return undefined;
    let upMs = 0;
    let busyMs = 0;
    for (const time of times) {
      const last = this.#last.get(time.replica);
      // A replica that was started again counts from its start on.
      if (last === undefined || time.upMs <= last.upMs) continue;
      upMs += time.upMs - last.upMs;
      busyMs += time.busyMs - last.busyMs;
    }
    this.#last = new Map(times.map((time) => [time.replica, time]));
    return upMs === 0 ? undefined : Math.min(1, Math.max(0, 1 - busyMs / upMs));
  }
}
