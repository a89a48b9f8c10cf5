/** Compares the graphs of losses with the numbers of verl and ROLL, in float64: value and gradient. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { POLICY_LOSSES, scoreOf, slopesOfTerms, tokenFigures } from "@hone/rl";
import { LOSS_CASES, type LossAnswer, type LossTask } from "@hone/rl/testing";
import { type Feed, Graph, GraphSession, gradients, Mul, ReduceSum } from "@hone/tensor";
import { buildTerms } from "./registry.ts";

describe("loss graphs", () => {
  for (const [hone, cases] of Map.groupBy(LOSS_CASES, (each) => each.hone)) {
    test(`${hone} has the golden values and gradients (${cases.length} cases)`, async () => {
      for (const each of cases) each.assertAnswered(await answer(each.task));
    });
  }

  test("the slopes that the record of trained tokens has are the gradients of the graphs", async () => {
    for (const { name, task } of LOSS_CASES) {
      if (task.terms.some((term) => scoreOf(term.name) === "value")) continue;
      const { gradient } = await answer(task);
      const groups = task.inputs.sequence ?? task.inputs.segment;
      const figures = tokenFigures(task.scores, task.inputs, groups);
      const ofTerms = slopesOfTerms(task.terms, { figures, weights: task.weights, groups });
      gradient.forEach((expected, entry) => {
        const found = ofTerms.reduce((sum, slopes) => sum + slopes[entry]!, 0);
        const error = Math.abs(found - expected);
        assert.ok(
          error <= 1e-9 * Math.max(1, Math.abs(expected)),
          `${name}[${entry}]: ${found}, ${expected}`,
        );
      });
    }
  });

  test("each loss has golden cases", () => {
    const asked = new Set(LOSS_CASES.flatMap(({ task }) => task.terms.map(({ name }) => name)));
    assert.deepEqual(
      Object.keys(POLICY_LOSSES).filter((name) => !asked.has(name as keyof typeof POLICY_LOSSES)),
      [],
    );
  });
});

async function answer({ terms, scores, inputs, weights }: LossTask): Promise<LossAnswer> {
  const graph = new Graph("loss");
  const feeds: Record<string, Feed> = {};
  const input = (name: string, values: readonly number[]) => {
    feeds[name] = { dtype: "float64", data: Float64Array.from(values), shape: [values.length] };
    return graph.input(name, "float64", ["entries"]);
  };
  const score = input("score", scores);
  const perEntry = buildTerms(terms, score, (name) => input(name, inputs[name]!));
  const loss = ReduceSum(Mul(perEntry, input("weight", weights)), { keepDims: false });
  graph.output("loss", loss);
  graph.output("gradient", gradients(graph, loss, [score])[0]!);
  const session = await GraphSession.create(graph, { intraOpThreads: 1 });
  const found = await session.run(feeds);
  await session.release();
  return { loss: Number(found.loss!.data[0]), gradient: Array.from(found.gradient!.data, Number) };
}
