/** The state that AdamW keeps from earlier updates. */
import { allocateShared, type ParameterInfo } from "@hone/nn";

/** First and second moments by parameter name, and the number of updates made. */
export interface AdamWState {
  step: number;
  readonly m: Readonly<Record<string, Float32Array>>;
  readonly v: Readonly<Record<string, Float32Array>>;
}

/** The state of the trained parameters before the first update, in memory that threads share. */
export function initialiseAdamW(parameters: readonly ParameterInfo[]): AdamWState {
  const zeros = () =>
    Object.fromEntries(
      parameters.map(({ name, shape }) => [
        name,
        allocateShared(shape.reduce((count, size) => count * size, 1)),
      ]),
    );
  return { step: 0, m: zeros(), v: zeros() };
}
