/**
 * A loss as an expression over numbers of a token: data that every engine can compute and differentiate.
 *
 * It is written with {@link TokenNumber}, whose methods make a tree of operations, and travels as JSON.
 *
 *   const ratio = logprob.minus(behaviourLogprob).exp();
 *   return ratio.times(advantage).min(ratio.clip(0.8, 1.28).times(advantage)).negated();
 */

import { HeadScore, MAX_LOG_RATIO, TokenInput } from "./token-numbers.ts";

/** Operations, each with how many operands it takes. What they do is said at the methods of {@link TokenNumber}. */
const OPERATIONS = {
  add: 2,
  subtract: 2,
  multiply: 2,
  divide: 2,
  min: 2,
  max: 2,
  greater: 2,
  negate: 1,
  exp: 1,
  log: 1,
  abs: 1,
  sigmoid: 1,
  detach: 1,
} as const;
export type Operation = keyof typeof OPERATIONS;

/** Numbers of a token that an expression may read: what is trained, and what does not need tokens to be taken together. */
const EXPRESSION_INPUTS = [
  HeadScore.logprob,
  TokenInput.behaviourLogprob,
  TokenInput.advantage,
  TokenInput.reward,
] as const;
export type ExpressionInput = (typeof EXPRESSION_INPUTS)[number];

/** A constant, the name of a number of the token, or an operation with its operands. */
export type Expression = number | ExpressionInput | readonly [Operation, ...Expression[]];

/** More than any loss that was published needs; they bound what engines compile. */
const MAX_OPERATIONS = 1_000;
const MAX_DEPTH = 200;

/** A number of each token, and what is made of such numbers. */
export class TokenNumber {
  readonly expression: Expression;

  constructor(expression: Expression) {
    this.expression = expression;
  }

  plus(other: TokenNumber | number): TokenNumber {
    return made("add", this, other);
  }
  minus(other: TokenNumber | number): TokenNumber {
    return made("subtract", this, other);
  }
  times(other: TokenNumber | number): TokenNumber {
    return made("multiply", this, other);
  }
  over(other: TokenNumber | number): TokenNumber {
    return made("divide", this, other);
  }
  /** The smaller of the two. */
  min(other: TokenNumber | number): TokenNumber {
    return made("min", this, other);
  }
  /** The larger of the two. */
  max(other: TokenNumber | number): TokenNumber {
    return made("max", this, other);
  }
  /** Kept within bounds. */
  clip(low: number, high: number): TokenNumber {
    return this.max(low).min(high);
  }
  /** 1 where it is above the other, else 0; it has no gradient. */
  isAbove(other: TokenNumber | number): TokenNumber {
    return made("greater", this, other);
  }
  negated(): TokenNumber {
    return made("negate", this);
  }
  /** e^x, with x kept within 20 of 0, so that it stays finite. */
  exp(): TokenNumber {
    return made("exp", this.clip(-MAX_LOG_RATIO, MAX_LOG_RATIO));
  }
  /** The natural logarithm. */
  log(): TokenNumber {
    return made("log", this);
  }
  abs(): TokenNumber {
    return made("abs", this);
  }
  /** 1 / (1 + e^-x) */
  sigmoid(): TokenNumber {
    return made("sigmoid", this);
  }
  /** The same number without a gradient. */
  detached(): TokenNumber {
    return made("detach", this);
  }
}

function made(operation: Operation, ...operands: readonly (TokenNumber | number)[]): TokenNumber {
  const parts = operands.map((operand) => (operand instanceof TokenNumber ? operand.expression : operand));
  return new TokenNumber([operation, ...parts]);
}

/** The numbers of a token, by name, for a function that makes a loss of them. */
export function tokenNumbers(): Readonly<Record<ExpressionInput, TokenNumber>> {
  return Object.fromEntries(EXPRESSION_INPUTS.map((name) => [name, new TokenNumber(name)])) as Record<
    ExpressionInput,
    TokenNumber
  >;
}

/** Why something is no expression that engines take; undefined = it is one. */
export function expressionProblem(found: unknown): string | undefined {
  let operations = 0;
  const problemOf = (part: unknown, depth: number): string | undefined => {
    if (typeof part === "number")
      return Number.isFinite(part) ? undefined : `the constant ${part} is not finite`;
    if (typeof part === "string") {
      if ((EXPRESSION_INPUTS as readonly string[]).includes(part)) return undefined;
      return `it reads ${JSON.stringify(part)}, and may read ${EXPRESSION_INPUTS.join(", ")}`;
    }
    if (!Array.isArray(part)) return "a part of it is no number, no name and no operation";
    if (++operations > MAX_OPERATIONS) return `it has more than ${MAX_OPERATIONS} operations`;
    if (depth > MAX_DEPTH) return `its operations are nested more than ${MAX_DEPTH} deep`;
    const [operation, ...operands] = part as unknown[];
    if (typeof operation !== "string" || !Object.hasOwn(OPERATIONS, operation)) {
      return `the operation ${JSON.stringify(operation)} is unknown; known are ${Object.keys(OPERATIONS).join(", ")}`;
    }
    const wanted = OPERATIONS[operation as Operation];
    if (operands.length !== wanted)
      return `${operation} has ${operands.length} operands and must have ${wanted}`;
    for (const operand of operands) {
      const problem = problemOf(operand, depth + 1);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };
  return problemOf(found, 0);
}

/** The numbers of a token that an expression reads, each once; `logprob` is among them where it depends on what is trained. */
export function inputsOfExpression(expression: Expression): ExpressionInput[] {
  if (typeof expression === "number") return [];
  if (typeof expression === "string") return [expression];
  const [, ...operands] = expression;
  return [...new Set(operands.flatMap(inputsOfExpression))];
}

/** Builds an expression with the operations of an engine. */
export function buildExpression<Value>(
  expression: Expression,
  { input, operations }: ExpressionBackend<Value>,
): Value | number {
  if (typeof expression === "number") return expression;
  if (typeof expression === "string") return input(expression);
  const [operation, ...operands] = expression;
  return operations[operation](...operands.map((operand) => buildExpression(operand, { input, operations })));
}

/** What an engine computes expressions with. Operands may be constants. */
export interface ExpressionBackend<Value> {
  readonly input: (name: ExpressionInput) => Value;
  readonly operations: Readonly<Record<Operation, (...operands: (Value | number)[]) => Value | number>>;
}

/**
 * Whether a token may have a gradient where its advantage is 0: rollouts that teach nothing are then trained too. An expression
 * is tried at a few places, as a number with its slope.
 */
export function trainsWithoutAdvantage(expression: Expression): boolean {
  const places = [-0.1, -0.7, -2, -5].flatMap((logprob) =>
    [-0.2, -1, -4].flatMap((behaviourLogprob) =>
      [0, 1].map((reward) => ({ logprob, behaviourLogprob, reward, advantage: 0 })),
    ),
  );
  return places.some((place) => slopeAt(expression, place) !== 0);
}

/** A number and its derivative with respect to the token's log-probability. */
interface Dual {
  readonly value: number;
  readonly slope: number;
}

/** The derivative of an expression with respect to the log-probability of the token. */
export function slopeAt(expression: Expression, place: Readonly<Record<ExpressionInput, number>>): number {
  const dual = (operand: Dual | number): Dual =>
    typeof operand === "number" ? { value: operand, slope: 0 } : operand;
  const binary =
    (value: (a: number, b: number) => number, slope: (a: Dual, b: Dual) => number) =>
    (...operands: (Dual | number)[]): Dual => {
      const [a, b] = operands.map(dual) as [Dual, Dual];
      return { value: value(a.value, b.value), slope: slope(a, b) };
    };
  const unary =
    (value: (a: number) => number, slope: (a: number) => number) =>
    (...operands: (Dual | number)[]): Dual => {
      const a = dual(operands[0]!);
      return { value: value(a.value), slope: a.slope === 0 ? 0 : slope(a.value) * a.slope };
    };
  const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
  const found = buildExpression<Dual>(expression, {
    input: (name) => ({ value: place[name], slope: name === HeadScore.logprob ? 1 : 0 }),
    operations: {
      add: binary(
        (a, b) => a + b,
        (a, b) => a.slope + b.slope,
      ),
      subtract: binary(
        (a, b) => a - b,
        (a, b) => a.slope - b.slope,
      ),
      multiply: binary(
        (a, b) => a * b,
        (a, b) => a.slope * b.value + b.slope * a.value,
      ),
      divide: binary(
        (a, b) => a / b,
        (a, b) => (a.slope * b.value - b.slope * a.value) / b.value ** 2,
      ),
      min: binary(Math.min, (a, b) => (a.value <= b.value ? a.slope : b.slope)),
      max: binary(Math.max, (a, b) => (a.value >= b.value ? a.slope : b.slope)),
      greater: binary(
        (a, b) => Number(a > b),
        () => 0,
      ),
      negate: unary(
        (a) => -a,
        () => -1,
      ),
      exp: unary(Math.exp, Math.exp),
      log: unary(Math.log, (a) => 1 / a),
      abs: unary(Math.abs, Math.sign),
      sigmoid: unary(sigmoid, (a) => sigmoid(a) * (1 - sigmoid(a))),
      detach: unary(
        (a) => a,
        () => 0,
      ),
    },
  });
  return typeof found === "number" ? 0 : found.slope;
}
