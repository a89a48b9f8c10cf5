/**
 * Shapes with static and symbolic dimensions.
 *
 * A dimension is a number, or a string for a size that is known only at run time: a name (`rows`), a product in canonical
 * order (`4*rows*tokens`), or a sum in parentheses (`(past+tokens)`). Two dimensions count as the same size exactly if these
 * values are equal, so a symbolic size never equals a number.
 */
import { ShapeError } from "./errors.ts";

/** Size along one axis. */
export type Dim = number | string;

/** Sizes of all axes, outermost first. */
export type TensorShape = readonly Dim[];

interface Product {
  readonly coefficient: number;
  /** Names and sums, in sorted order. */
  readonly factors: readonly string[];
}

/** Product of two sizes. */
export function multiplyDims(left: Dim, right: Dim): Dim {
  const a = parse(left);
  const b = parse(right);
  return format({ coefficient: a.coefficient * b.coefficient, factors: [...a.factors, ...b.factors] });
}

/** `left / right` if it is a whole number for all values of the names, else undefined. */
export function divideDims(left: Dim, right: Dim): Dim | undefined {
  const a = parse(left);
  const b = parse(right);
  if (b.coefficient === 0 || a.coefficient % b.coefficient !== 0) return undefined;
  const factors = [...a.factors];
  for (const factor of b.factors) {
    const at = factors.indexOf(factor);
    if (at < 0) return undefined;
    factors.splice(at, 1);
  }
  return format({ coefficient: a.coefficient / b.coefficient, factors });
}

/** Sum of two sizes. */
export function addDims(left: Dim, right: Dim): Dim {
  if (typeof left === "number" && typeof right === "number") return left + right;
  if (left === 0) return right;
  if (right === 0) return left;
  if (left === right) return multiplyDims(2, left);
  return `(${left}+${right})`;
}

/** Number of elements. */
export function elementCount(shape: TensorShape): Dim {
  return shape.reduce<Dim>((product, dim) => multiplyDims(product, dim), 1);
}

/** Number of elements of a shape without symbolic dimensions, else undefined. */
export function staticCount(shape: TensorShape): number | undefined {
  const count = elementCount(shape);
  return typeof count === "number" ? count : undefined;
}

export function sameShape(left: TensorShape, right: TensorShape): boolean {
  return left.length === right.length && left.every((dim, axis) => dim === right[axis]);
}

/** `[rows, 4, 16]` */
export function formatShape(shape: TensorShape): string {
  return `[${shape.join(", ")}]`;
}

/** Converts an axis that may count from the end to 0..rank-1. */
export function checkAxis(operator: string, axis: number, rank: number): number {
  const normal = axis < 0 ? axis + rank : axis;
  if (!Number.isInteger(axis) || normal < 0 || normal >= rank) {
    const rule = `an axis must be a whole number from -${rank} to ${rank - 1}`;
    throw new ShapeError(operator, `${rule}, but is ${axis}`);
  }
  return normal;
}

/** Shape of an element-wise result under NumPy's broadcasting rule. */
export function checkBroadcastShape(operator: string, left: TensorShape, right: TensorShape): TensorShape {
  const rank = Math.max(left.length, right.length);
  const result: Dim[] = [];
  for (let axis = 0; axis < rank; axis++) {
    const a = left[axis - rank + left.length] ?? 1;
    const b = right[axis - rank + right.length] ?? 1;
    if (a !== b && a !== 1 && b !== 1) {
      const rule = "along every axis the sizes must be equal, or one of them 1";
      throw new ShapeError(
        operator,
        `${rule}, but the shapes are ${formatShape(left)} and ${formatShape(right)}`,
      );
    }
    result.push(a === 1 ? b : a);
  }
  return result;
}

function parse(dim: Dim): Product {
  if (typeof dim === "number") return { coefficient: dim, factors: [] };
  let coefficient = 1;
  const factors: string[] = [];
  for (const part of splitFactors(dim)) {
    if (/^\d+$/.test(part)) coefficient *= Number(part);
    else factors.push(part);
  }
  return { coefficient, factors };
}

function format(product: Product): Dim {
  const { coefficient, factors } = product;
  if (factors.length === 0 || coefficient === 0) return coefficient;
  const sorted = [...factors].sort();
  return coefficient === 1 ? sorted.join("*") : [coefficient, ...sorted].join("*");
}

/** Splits a product at every `*` outside parentheses. */
function splitFactors(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (char === "(") depth++;
    else if (char === ")") depth--;
    else if (char === "*" && depth === 0) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}
