/** The metrics of a run's steps, which grow while it runs. */

import { read, runPath } from "../../api.ts";
import type { Series } from "../../api-types.ts";

export interface GrowingSeries {
  readonly value: Series;
  /** Reads the steps that are not there yet, and appends them. */
  readMore(): Promise<void>;
}

export function growingSeries(runId: string, signal: AbortSignal): GrowingSeries {
  const steps: number[] = [];
  const timesMs: number[] = [];
  const metrics: Record<string, (number | null)[]> = {};
  return {
    value: { steps, timesMs, metrics },
    async readMore() {
      for (let hasMore = true; hasMore; ) {
        const query = { after: steps.at(-1) ?? 0 };
        const next = await read<Series & { readonly hasMore: boolean }>(runPath(runId, "steps"), {
          signal,
          query,
        });
        const known = steps.length;
        steps.push(...next.steps);
        timesMs.push(...next.timesMs);
        for (const [name, values] of Object.entries(next.metrics)) {
          metrics[name] ??= new Array<number | null>(known).fill(null);
          metrics[name].push(...values);
        }
        for (const values of Object.values(metrics)) while (values.length < steps.length) values.push(null);
        hasMore = next.hasMore;
      }
    },
  };
}

/** The last value that is there. */
export function lastOf(values: readonly (number | null)[] | undefined): number | null {
  return values?.findLast((value) => value !== null) ?? null;
}
