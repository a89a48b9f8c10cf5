/** What every sink of metrics must do; each runs this with a real backend, which the sink is opened over again and again. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { EventSink } from "../../domain/event-sink.ts";
import type { RunFact } from "../../domain/run-event.ts";
import { sampleMetrics } from "../../testing/sample-run.ts";
import { pointsOf } from "../metric-points.ts";

/** Points of a run by name: pairs of step and value, in the order in which the backend has them. */
export type Curves = Readonly<Record<string, ReadonlyArray<readonly [step: number, value: number]>>>;

export interface SinkBackend {
  /** A new sink over the same backend, as after a restart. */
  open(): EventSink;
  /** Reads the run of this id that began last. */
  read(runId: string): Promise<Curves>;
  /** How the backend has a name of metric-points.ts. @default the same */
  nameOf?(name: string): string;
  /** How exactly the backend keeps numbers. @default 0 */
  readonly tolerance?: number;
}

const BEGAN_MS = Date.parse("2026-03-01T12:00:00Z");
const CONFIG = {
  name: "lake",
  seed: 7,
  trainer: { optimizer: { learningRate: 0.001 } },
  judge: [{ kind: "rule" }],
};

/** The facts of a run of some steps with an evaluation behind every second one. */
export function runFacts(runId: string, steps: number): RunFact[] {
  let sequence = 0;
  const base = () => ({ runId, sequence: ++sequence, timeMs: BEGAN_MS + sequence * 1_000 });
  const facts: RunFact[] = [{ ...base(), kind: "accepted", configJson: JSON.stringify(CONFIG) }];
  for (let step = 1; step <= steps; step++) {
    facts.push({ ...base(), kind: "step_begun", step });
    const metrics = { ...sampleMetrics(step), unknown: null, "judge/a b/é": 1, "../x": 2, "a//b": 3 };
    facts.push({ ...base(), kind: "step_completed", step, totalSteps: steps, version: step, metrics });
    if (step % 2 === 1) continue;
    const scores = { success: step / 10, "pass@4": 0.5 };
    facts.push({ ...base(), kind: "evaluated", version: step, mode: "greedy", episodes: 9, metrics: scores });
  }
  const checkpoint = `runs/${runId}/checkpoints/step-${steps}`;
  facts.push({ ...base(), kind: "ended", phase: "completed", reason: "", checkpoint, resumption: 0 });
  return facts;
}

/** What a backend must have after these facts. */
export function expectedCurves(facts: readonly RunFact[]): Curves {
  const curves: Record<string, [number, number][]> = {};
  for (const fact of facts) {
    const points = pointsOf(fact);
    if (points === undefined) continue;
    for (const [name, value] of points.values) {
      const curve = curves[name] ?? [];
      curves[name] = curve;
      curve.push([points.step, value]);
    }
  }
  return curves;
}

/** Fails unless both have the same points, each once and in order. */
export function assertCurves(found: Curves, expected: Curves, tolerance = 0): void {
  assert.deepEqual(Object.keys(found).toSorted(), Object.keys(expected).toSorted());
  for (const [name, points] of Object.entries(expected)) {
    const own = found[name] ?? [];
    assert.deepEqual(
      own.map(([step]) => step),
      points.map(([step]) => step),
      name,
    );
    for (const [at, [, value]] of points.entries()) {
      const difference = Math.abs((own[at]?.[1] ?? Number.NaN) - value);
      assert.ok(
        difference <= tolerance * Math.max(1, Math.abs(value)),
        `${name}: ${own[at]?.[1]}, not ${value}`,
      );
    }
  }
}

/** @param options.hasTimesOnly the backend knows times and no steps, so a step that is reported again is another point. */
export function sinkSuite(
  name: string,
  backend: () => SinkBackend,
  options: { skip?: string | false; hasTimesOnly?: boolean } = {},
): void {
  const writeEach = async (sink: EventSink, facts: readonly RunFact[]) => {
    for (const fact of facts) await sink.write([fact]);
  };
  const check = async (runId: string, facts: readonly RunFact[]) => {
    const { nameOf = (name) => name, tolerance } = backend();
    const expected = Object.entries(expectedCurves(facts)).map(([name, points]) => [nameOf(name), points]);
    assertCurves(await backend().read(runId), Object.fromEntries(expected), tolerance);
  };

  describe(name, { skip: options.skip ?? false }, () => {
    test("every figure of steps and evaluations is one point, at its step", async () => {
      const facts = runFacts("whole-1", 6);
      await writeEach(backend().open(), facts);
      await check("whole-1", facts);
    });

    test("an event that comes twice makes one point", async () => {
      const facts = runFacts("twice-1", 4);
      const sink = backend().open();
      for (const fact of facts) await writeEach(sink, [fact, fact]);
      await check("twice-1", facts);
    });

    test("a sink that is opened again goes on, and repeats nothing that comes again", async () => {
      const facts = runFacts("again-1", 6);
      await writeEach(backend().open(), facts.slice(0, 7));
      await writeEach(backend().open(), facts.slice(4, 11));
      await writeEach(backend().open(), facts);
      await check("again-1", facts);
    });

    test("a step that its trainer reported again, later and with another time, stays one point", {
      skip: options.hasTimesOnly === true,
    }, async () => {
      const facts = runFacts("later-1", 4);
      const again = facts
        .filter(({ kind }) => kind === "step_completed")
        .map((fact) => ({ ...fact, sequence: fact.sequence + 100, timeMs: fact.timeMs + 900_000 }));
      const sink = backend().open();
      await writeEach(sink, facts);
      await writeEach(sink, again.slice(-1));
      await writeEach(backend().open(), again.slice(-1));
      await check("later-1", facts);
    });

    test("runs that go on at the same time have curves of their own", async () => {
      const [one, two] = [runFacts("one-1", 4), runFacts("two-1", 3)];
      const sink = backend().open();
      for (const [at, fact] of one.entries()) await writeEach(sink, [fact, ...two.slice(at, at + 1)]);
      await check("one-1", one);
      await check("two-1", two);
    });

    test(
      "a run with the id of an earlier one, as after the bus lost its data, is a run of its own",
      options.hasTimesOnly === true ? { skip: true } : {},
      async () => {
        const earlier = runFacts("same-1", 6);
        await writeEach(backend().open(), earlier);
        const facts = runFacts("same-1", 4).map((fact) => ({ ...fact, timeMs: fact.timeMs + 86_400_000 }));
        await writeEach(backend().open(), facts.slice(0, 4));
        await writeEach(backend().open(), facts);
        await check("same-1", facts);
      },
    );

    test("a run whose acceptance is no longer on the bus has its curves all the same", async () => {
      const facts = runFacts("late-1", 4).slice(5);
      await writeEach(backend().open(), facts);
      await check("late-1", facts);
    });
  });
}
