/**
 * Evaluates an arithmetic expression. jsep parses it. Only numbers and the operators, constants and functions that are listed
 * here are evaluated; everything else that jsep can parse is refused. No part of the expression is run as code.
 */

import { TerminalError } from "@hone/core";
import jsep from "jsep";

/** The text is not an arithmetic expression, or has no value. */
export class ExpressionError extends TerminalError {
  constructor(message: string) {
    super("EXPRESSION", message);
  }
}

const MAX_CHARACTERS = 2_000;
const MAX_DEPTH = 64;
const CONSTANTS: ReadonlyMap<string, number> = new Map([
  ["pi", Math.PI],
  ["e", Math.E],
]);
const FUNCTIONS: ReadonlyMap<string, (...values: number[]) => number> = new Map(
  Object.entries({
    sqrt: Math.sqrt,
    abs: Math.abs,
    floor: Math.floor,
    ceil: Math.ceil,
    round: Math.round,
    min: Math.min,
    max: Math.max,
    log: Math.log,
    exp: Math.exp,
    sin: Math.sin,
    cos: Math.cos,
    tan: Math.tan,
  }),
);
/** Operators that bind more tightly have a higher number. Powers bind more tightly than signs and are handled below. */
const PRECEDENCES: Readonly<Record<string, number>> = { "+": 1, "-": 1, "*": 2, "/": 2, "%": 2 };

/** Nesting depth at the place that is being parsed. */
let depth = 0;
prepareParser();

/** @throws {ExpressionError} when the text is not an arithmetic expression, or its value is not a finite number. */
export function evaluateExpression(text: string): number {
  if (text.length > MAX_CHARACTERS) {
    throw new ExpressionError(
      `the expression has ${text.length} characters; it may have ${MAX_CHARACTERS} characters`,
    );
  }
  const value = valueIn(parse(asWritten(text)));
  if (Number.isFinite(value)) return value;
  throw new ExpressionError(`the value of the expression must be a finite number, and is ${value}`);
}

/** Accepts what people write: digits in groups, × and ÷, and a currency sign. */
function asWritten(text: string): string {
  return text
    .replace(/(\d),(?=\d{3}(?!\d))/g, "$1")
    .replaceAll("×", "*")
    .replaceAll("÷", "/")
    .replaceAll("−", "-")
    .replaceAll("$", "");
}

function parse(text: string): jsep.CoreExpression {
  depth = 0;
  try {
    return jsep(text) as jsep.CoreExpression;
  } catch (cause) {
    if (cause instanceof ExpressionError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ExpressionError(`this is no arithmetic expression: ${reason}`);
  }
}

/**
 * Leaves jsep only the signs and operators of arithmetic, and none of JavaScript's. In jsep a sign binds more tightly than any
 * operator, so -2 ^ 2 would be 4; therefore a power is parsed together with the number in front of it.
 */
function prepareParser(): void {
  jsep.removeAllUnaryOps();
  jsep.removeAllBinaryOps();
  jsep.removeAllLiterals();
  for (const sign of ["+", "-"]) jsep.addUnaryOp(sign);
  for (const [operator, precedence] of Object.entries(PRECEDENCES)) jsep.addBinaryOp(operator, precedence);
  jsep.hooks.add("gobble-token", function enter(env) {
    descend();
    if (/[\d.]/.test(this.char)) env.node = this.gobbleNumericLiteral() as jsep.Expression;
  });
  jsep.hooks.add("after-token", function leave(env) {
    depth--;
    if (env.node === undefined || (env.node as unknown) === false) return;
    this.gobbleSpaces();
    const operator = ["**", "^"].find((each) => this.expr.startsWith(each, this.index));
    if (operator === undefined) return;
    this.index += operator.length;
    descend();
    const right = this.gobbleToken();
    depth--;
    if (!right) this.throwError(`a number is expected after ${operator}`);
    env.node = { type: "BinaryExpression", operator: "^", left: env.node, right };
  });
}

function descend(): void {
  if (++depth > MAX_DEPTH)
    throw new ExpressionError(`the expression is nested more than ${MAX_DEPTH} levels deep`);
}

function valueIn(node: jsep.Expression): number {
  const expression = node as jsep.CoreExpression;
  switch (expression.type) {
    case "Literal":
      if (typeof expression.value === "number") return expression.value;
      throw refused(`${expression.raw} is no number`);
    case "Identifier":
      return named(CONSTANTS, expression.name);
    case "UnaryExpression": {
      const value = valueIn(expression.argument);
      return expression.operator === "-" ? -value : value;
    }
    case "BinaryExpression":
      return combined(expression.operator, valueIn(expression.left), valueIn(expression.right));
    case "CallExpression": {
      const callee = expression.callee as jsep.CoreExpression;
      if (callee.type !== "Identifier") throw refused("only a function that is named can be called");
      const call = named(FUNCTIONS, callee.name);
      if (expression.arguments.length === 0) throw refused(`a number is expected in ${callee.name}()`);
      return call(...expression.arguments.map(valueIn));
    }
    case "Compound":
      throw refused(
        expression.body.length === 0 ? "a number is expected" : "one expression is expected, not several",
      );
    default:
      throw refused(`it has a ${expression.type}`);
  }
}

function combined(operator: string, left: number, right: number): number {
  switch (operator) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "^":
      return left ** right;
    case "/":
    case "%":
      if (right === 0) throw new ExpressionError("a number cannot be divided by 0");
      return operator === "/" ? left / right : left % right;
    default:
      throw refused(`${operator} is no operator`);
  }
}

function named<Value>(table: ReadonlyMap<string, Value>, name: string): Value {
  const value = table.get(name);
  if (value !== undefined) return value;
  const known = [...CONSTANTS.keys(), ...FUNCTIONS.keys()].join(", ");
  throw new ExpressionError(
    `${name} has no value here: a name must be one of ${known}, and a function has its numbers in parentheses`,
  );
}

function refused(why: string): ExpressionError {
  return new ExpressionError(`this is no arithmetic expression: ${why}`);
}
