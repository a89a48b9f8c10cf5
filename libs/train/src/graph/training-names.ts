/** Names of what goes into a training graph beside the parameters, and of what comes out. Letters as in training-graph.ts. */

/**
 * Inputs. Those of entries and {@link INPUT.entropyWeight} are fed by chunk of the head, {@link INPUT.visibleEnd} by piece of
 * the rows: see {@link chunkInput}.
 */
export const INPUT = {
  /** float32 [B, T, C]: the embedding rows of the tokens. */
  embedded: "embedded",
  /** int32 [B, T] */
  positionIds: "positionIds",
  /** int64 [1], of training only: float32 values that memory is reserved for before the run takes any. */
  reserved: "reserved",
  /** int32 [B, T] */
  visibleEnd: "visibleEnd",
  /** int32 [U]: distinct indices into B*T. */
  positions: "positions",
  /** int32 [E]: position of the chunk times V plus token. */
  choices: "choices",
  /** float32 [E]; what the loss reads of the entries goes by its own name, see `TokenInput`. */
  weight: "weight",
  /** float32 [U]: factor of each position's entropy, subtracted from the loss. */
  entropyWeight: "entropyWeight",
} as const;

/** Outputs beside the gradients. */
export const OUTPUT = {
  /** float32 [] */
  loss: "loss",
  /** float32 [E] */
  logprob: "logprob",
  /** float32 [U] */
  entropy: "entropy",
} as const;

/** Input that holds the values of one chunk of positions (head-loss.ts), or of one piece of the rows. */
export function chunkInput(name: string, chunk: number): string {
  return `${name}.${chunk}`;
}

/** Output that holds the gradient in a parameter, or in the embedded tokens. */
export function gradientOutput(name: string): string {
  return `gradient:${name}`;
}
