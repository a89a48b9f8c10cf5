/** A task, which one or more rollouts try to solve. */

export type Task = TaskOfKind & {
  /** Name of the part of a mix; absent where its source is no mix, or the part has no name. */
  readonly part?: string;
};

type TaskOfKind =
  | {
      readonly kind: "environment";
      /** `<environment>:<seed>` */
      readonly id: string;
      readonly environment: string;
      readonly seed: number;
      readonly configJson: string;
    }
  | {
      readonly kind: "row";
      /** `<file name>:<line>` */
      readonly id: string;
      /** All columns of the row, as they stand in the file. */
      readonly rowJson: string;
    };

/** A source of tasks, numbered 0..size-1 in the source's own order. */
export interface TaskSource {
  /** Number of distinct tasks, at least 1. */
  readonly size: number;
  /** The tasks with these numbers, in the order asked for. @throws {SourceError} when one cannot be read. */
  read(elements: readonly number[]): Promise<Task[]>;
}
