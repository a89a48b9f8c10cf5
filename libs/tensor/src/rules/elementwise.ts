/** Gradient rules of element-wise primitives; g is the gradient of the loss with respect to the result y. */
import { isFloating } from "../dtype.ts";
import type { Tensor } from "../graph.ts";
import {
  Add,
  And,
  Cast,
  Cos,
  Div,
  GreaterOrEqual,
  LessOrEqual,
  Mul,
  Neg,
  Sigmoid,
  Sign,
  Sin,
  Sub,
  Where,
} from "../ops/elementwise.ts";
import { binaryRule, type GradientRule, unaryRule, unbroadcast } from "./rule.ts";

/** dx = -g */
export const negRule = unaryRule<"Neg">((g) => Neg(g));

/** dx = g sign(x) */
export const absRule = unaryRule<"Abs">((g, x) => Mul(g, Sign(x)));

/** dx = g y */
export const expRule = unaryRule<"Exp">((g, _x, y) => Mul(g, y));

/** dx = g / x */
export const logRule = unaryRule<"Log">((g, x) => Div(g, x));

/** dx = g / (2 y) */
export const sqrtRule = unaryRule<"Sqrt">((g, _x, y) => Div(g, Mul(y, 2)));

/** dx = -g y^2 */
export const reciprocalRule = unaryRule<"Reciprocal">((g, _x, y) => Neg(Mul(g, Mul(y, y))));

/** dx = g y (1 - y) */
export const sigmoidRule = unaryRule<"Sigmoid">((g, _x, y) => Mul(g, Mul(y, Sub(1, y))));

/** dx = -g sin(x) */
export const cosRule = unaryRule<"Cos">((g, x) => Neg(Mul(g, Sin(x))));

/** dx = g cos(x) */
export const sinRule = unaryRule<"Sin">((g, x) => Mul(g, Cos(x)));

/** dx = g, or none where the gradient stops */
export const identityRule = unaryRule<"Identity">((g, _x, _y, node) =>
  node.attributes.stopsGradient ? undefined : g,
);

/** dx = g in the type of x; whole numbers get no gradient. */
export const castRule = unaryRule<"Cast">((g, x) => (isFloating(x.dtype) ? Cast(g, x.dtype) : undefined));

/** da = g, db = g */
export const addRule = binaryRule<"Add">((g) => [g, g]);

/** da = g, db = -g */
export const subRule: GradientRule<"Sub"> = ({ inputs, gradients }) => {
  const [a, b] = inputs as readonly [Tensor, Tensor];
  const g = gradients[0]!;
  return [unbroadcast(g, a), Neg(unbroadcast(g, b))];
};

/** da = g b, db = g a */
export const mulRule = binaryRule<"Mul">((g, a, b) => [Mul(g, b), Mul(g, a)]);

/** da = g / b, db = -g y / b */
export const divRule = binaryRule<"Div">((g, _a, b, y) => {
  const da = Div(g, b);
  return [da, Neg(Mul(da, y))];
});

/** The smaller operand gets g; if both are equal, the first. */
export const minRule = binaryRule<"Min">((g, a, b) => choose(LessOrEqual(a, b), g));

/** The larger operand gets g; if both are equal, the first. */
export const maxRule = binaryRule<"Max">((g, a, b) => choose(GreaterOrEqual(a, b), g));

/** dx = g where low <= x <= high, else 0; the bounds are constants. */
export const clipRule: GradientRule<"Clip"> = ({ inputs, gradients }) => {
  const [x, low, high] = inputs as readonly [Tensor, Tensor, Tensor];
  return [Where(And(GreaterOrEqual(x, low), LessOrEqual(x, high)), gradients[0]!, 0)];
};

/** da = g where the condition holds, db = g where it does not. */
export const whereRule: GradientRule<"Where"> = ({ inputs, gradients }) => {
  const [condition, a, b] = inputs as readonly [Tensor, Tensor, Tensor];
  const [da, db] = choose(condition, gradients[0]!);
  return [undefined, unbroadcast(da, a), unbroadcast(db, b)];
};

/** x sigmoid(alpha x), with s the sigmoid: dx = g (s + alpha y (1 - s)) */
export const quickGeluRule = unaryRule<"QuickGelu">((g, x, y, node) => {
  const { alpha } = node.attributes;
  const s = Sigmoid(alpha === 1 ? x : Mul(x, alpha));
  const scaled = alpha === 1 ? y : Mul(y, alpha);
  return Mul(g, Add(s, Mul(scaled, Sub(1, s))));
});

function choose(isFirst: Tensor, g: Tensor): readonly [Tensor, Tensor] {
  return [Where(isFirst, g, 0), Where(isFirst, 0, g)];
}
