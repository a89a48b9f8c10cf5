/** Turns the metrics of many steps from rows into columns, so that a name is sent once and not with every step. */

/** One completed step. */
export interface StepFigures {
  readonly step: number;
  readonly version: number;
  readonly timeMs: number;
  readonly metrics: Readonly<Record<string, number | null>>;
}

/** Columns of equal length. */
export interface Series {
  readonly steps: readonly number[];
  readonly timesMs: readonly number[];
  /** By name; null where a step had no such metric. */
  readonly metrics: Readonly<Record<string, readonly (number | null)[]>>;
}

export function seriesOf(steps: readonly StepFigures[]): Series {
  const columns = new Map<string, (number | null)[]>();
  for (const [row, { metrics }] of steps.entries()) {
    for (const [name, value] of Object.entries(metrics)) {
      let column = columns.get(name);
      if (column === undefined) {
        column = new Array<number | null>(steps.length).fill(null);
        columns.set(name, column);
      }
      column[row] = value;
    }
  }
  return {
    steps: steps.map(({ step }) => step),
    timesMs: steps.map(({ timeMs }) => timeMs),
    metrics: Object.fromEntries([...columns].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}
