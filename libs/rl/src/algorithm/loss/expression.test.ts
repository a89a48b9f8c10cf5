import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { expressionProblem, inputsOfExpression, tokenNumbers, trainsWithoutAdvantage } from "./expression.ts";

const { logprob, behaviourLogprob, advantage } = tokenNumbers();
const ratio = logprob.minus(behaviourLogprob).exp();
const ppo = ratio.times(advantage).min(ratio.clip(0.8, 1.28).times(advantage)).negated();

describe("a loss as an expression", () => {
  test("is data that says what it reads", () => {
    assert.deepEqual(logprob.times(advantage).negated().expression, [
      "negate",
      ["multiply", "logprob", "advantage"],
    ]);
    assert.deepEqual(inputsOfExpression(ppo.expression), ["logprob", "behaviourLogprob", "advantage"]);
    assert.equal(expressionProblem(JSON.parse(JSON.stringify(ppo.expression))), undefined);
  });

  test("is known to need no training where it has no gradient without an advantage", () => {
    assert.equal(trainsWithoutAdvantage(ppo.expression), false);
    const square = logprob.minus(behaviourLogprob).times(logprob.minus(behaviourLogprob));
    assert.equal(trainsWithoutAdvantage(ppo.plus(square.times(0.1)).expression), true);
    assert.equal(trainsWithoutAdvantage(ppo.plus(square.detached()).expression), false);
    assert.equal(
      trainsWithoutAdvantage(ppo.plus(logprob.isAbove(-1).times(logprob.sigmoid())).expression),
      true,
    );
  });

  test("is refused, with the part that is wrong", () => {
    const deep = Array.from({ length: 300 }).reduce<unknown>((inner) => ["negate", inner], "logprob");
    const wide = Array.from({ length: 11 }).reduce<unknown>((inner) => ["add", inner, inner], "logprob");
    for (const [found, problem] of [
      [["power", "logprob", 2], /the operation "power" is unknown; known are add, subtract/],
      [["constructor", "logprob"], /the operation "constructor" is unknown/],
      [["add", "logprob"], /add has 1 operands and must have 2/],
      ["referenceLogprob", /it reads "referenceLogprob", and may read logprob, behaviourLogprob/],
      [["exp", null], /a part of it is no number, no name and no operation/],
      [Number.POSITIVE_INFINITY, /the constant Infinity is not finite/],
      [deep, /nested more than 200 deep/],
      [wide, /more than 1000 operations/],
    ] as const) {
      assert.match(expressionProblem(found) ?? "", problem);
    }
  });
});
