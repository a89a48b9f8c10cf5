/** Work on some of the parameters, which a single thread does. */

import type { AdamWState } from "@hone/checkpoint";
import type { ParameterInfo } from "@hone/nn";
import { type AdamWOptions, updateAdamW } from "./adamw.ts";
import { squareSum } from "./gradient-norm.ts";

/** Values by parameter name. */
export type Values = Readonly<Record<string, Float32Array>>;

export type UpdateTask =
  /** sums += gradients */
  | { readonly kind: "add"; readonly sums: Values; readonly gradients: Values }
  /** The sum of squares of each gradient. */
  | { readonly kind: "squares"; readonly gradients: Values }
  /** A step of AdamW. */
  | {
      readonly kind: "update";
      readonly parameters: readonly ParameterInfo[];
      readonly weights: Values;
      readonly gradients: Values;
      /** The state before the step. */
      readonly state: AdamWState;
      readonly options: AdamWOptions;
      readonly gradientFactor: number;
    };

/** Does the work in place. @returns the sums of squares by parameter if the task is to compute them. */
export function runUpdateTask(task: UpdateTask): Record<string, number> {
  switch (task.kind) {
    case "add":
      for (const [name, gradient] of Object.entries(task.gradients)) addTo(task.sums[name]!, gradient);
      return {};
    case "squares":
      return Object.fromEntries(
        Object.entries(task.gradients).map(([name, gradient]) => [name, squareSum(gradient)]),
      );
    case "update": {
      const { parameters, weights, gradients, state, options, gradientFactor } = task;
      updateAdamW(parameters, weights, gradients, { ...state }, options, gradientFactor);
      return {};
    }
  }
}

function addTo(sum: Float32Array, gradient: Float32Array): void {
  for (let i = 0; i < sum.length; i++) sum[i]! += gradient[i]!;
}
