/**
 * The value of an arithmetic expression.
 *
 *     sum     = product (("+" | "-") product)*
 *     product = unary (("*" | "/" | "%") unary)*
 *     unary   = ("+" | "-") unary | power
 *     power   = atom (("^" | "**") unary)?
 *     atom    = number | constant | function "(" sum ("," sum)* ")" | "(" sum ")"
 */

import { TerminalError } from "@hone/core";

/** The expression is none, or has no value. */
export class ExpressionError extends TerminalError {
  constructor(rule: string, value: string) {
    super("EXPRESSION", `Cannot evaluate as ${rule}: current value is ${value}`);
  }
}

const MAX_CHARACTERS = 2_000;
const MAX_DEPTH = 64;
const CONSTANTS: Readonly<Record<string, number>> = { pi: Math.PI, e: Math.E };
const FUNCTIONS: Readonly<Record<string, (...values: number[]) => number>> = {
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
};
const TOKEN =
  /\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\*\*|[-+*/%^(),]))/y;

type Token =
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "name" | "mark"; readonly value: string };

/** @throws {ExpressionError} when it is no expression, or its value no finite number. */
export function evaluateExpression(text: string): number {
  if (text.length > MAX_CHARACTERS) {
    throw new ExpressionError(`it may have ${MAX_CHARACTERS} characters`, `${text.length}`);
  }
  const value = new Evaluator(tokensOf(text)).value();
  if (Number.isFinite(value)) return value;
  throw new ExpressionError("its value must be a finite number", String(value));
}

/** Digits in groups, signs of times and divided by, and currency are what people write. */
function tokensOf(text: string): Token[] {
  const plain = text
    .replace(/(\d),(?=\d{3}(?!\d))/g, "$1")
    .replaceAll("×", "*")
    .replaceAll("÷", "/")
    .replaceAll("−", "-")
    .replaceAll("$", "")
    .trimEnd();
  const tokens: Token[] = [];
  let at = 0;
  while (at < plain.length) {
    TOKEN.lastIndex = at;
    const [whole, number, name, mark] = TOKEN.exec(plain) ?? [];
    if (whole === undefined) {
      throw new ExpressionError("it must be an arithmetic expression", `"${plain.slice(at, at + 20)}"`);
    }
    if (number !== undefined) tokens.push({ kind: "number", value: Number(number) });
    else if (name !== undefined) tokens.push({ kind: "name", value: name });
    else tokens.push({ kind: "mark", value: mark ?? "" });
    at += whole.length;
  }
  return tokens;
}

class Evaluator {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  value(): number {
    const value = this.#sum();
    if (this.#at < this.#tokens.length) throw this.#unexpected("the end");
    return value;
  }

  #sum(): number {
    if (++this.#depth > MAX_DEPTH) {
      throw new ExpressionError(`it may be nested ${MAX_DEPTH} levels deep`, "deeper");
    }
    let value = this.#product();
    for (let mark = this.#takeMark("+", "-"); mark !== undefined; mark = this.#takeMark("+", "-")) {
      const next = this.#product();
      value = mark === "+" ? value + next : value - next;
    }
    this.#depth--;
    return value;
  }

  #product(): number {
    let value = this.#unary();
    while (true) {
      const mark = this.#takeMark("*", "/", "%");
      if (mark === undefined) return value;
      const next = this.#unary();
      if (mark !== "*" && next === 0) throw new ExpressionError("nothing can be divided by 0", "0");
      if (mark === "*") value *= next;
      else value = mark === "/" ? value / next : value % next;
    }
  }

  #unary(): number {
    let sign = 1;
    for (let mark = this.#takeMark("+", "-"); mark !== undefined; mark = this.#takeMark("+", "-")) {
      if (mark === "-") sign = -sign;
    }
    return sign * this.#power();
  }

  #power(): number {
    const base = this.#atom();
    if (this.#takeMark("^", "**") === undefined) return base;
    if (++this.#depth > MAX_DEPTH) {
      throw new ExpressionError(`it may be nested ${MAX_DEPTH} levels deep`, "deeper");
    }
    const value = base ** this.#unary();
    this.#depth--;
    return value;
  }

  #atom(): number {
    const token = this.#tokens[this.#at++];
    if (token?.kind === "number") return token.value;
    if (token?.kind === "name") return this.#named(token.value);
    if (token?.value === "(") {
      const value = this.#sum();
      if (this.#takeMark(")") === undefined) throw this.#unexpected(")");
      return value;
    }
    this.#at--;
    throw this.#unexpected("a number");
  }

  #named(name: string): number {
    const constant = Object.hasOwn(CONSTANTS, name) ? CONSTANTS[name] : undefined;
    if (constant !== undefined) return constant;
    const evaluate = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
    if (evaluate === undefined) {
      const known = [...Object.keys(CONSTANTS), ...Object.keys(FUNCTIONS)].join(", ");
      throw new ExpressionError(`a name must be one of ${known}`, name);
    }
    if (this.#takeMark("(") === undefined) throw this.#unexpected("(");
    const values = [this.#sum()];
    while (this.#takeMark(",") !== undefined) values.push(this.#sum());
    if (this.#takeMark(")") === undefined) throw this.#unexpected(")");
    return evaluate(...values);
  }

  #takeMark(...marks: readonly string[]): string | undefined {
    const token = this.#tokens[this.#at];
    if (token?.kind !== "mark" || !marks.includes(token.value)) return undefined;
    this.#at++;
    return token.value;
  }

  #unexpected(expected: string): ExpressionError {
    const token = this.#tokens[this.#at];
    return new ExpressionError(
      `${expected} is expected there`,
      token === undefined ? "the end" : `"${token.value}"`,
    );
  }
}
