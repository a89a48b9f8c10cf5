/** The tasks of rollouts, as agents and tools see them. */

/** The task that an agent works on. */
export interface AgentTask {
  /** Name that is unique within its source and never changes. */
  readonly id: string;
  /** The dataset row; undefined for an environment's task. */
  readonly row: Readonly<Record<string, unknown>> | undefined;
  /** What names the task's environment; absent for the row of a dataset. */
  readonly environment?: TaskEnvironment | undefined;
}

/** The environment that a task names. */
export interface TaskEnvironment {
  readonly name: string;
  readonly seed: number;
  readonly config: unknown;
}
