/** Names of a training graph's outputs and of its inputs other than the parameters. Letters as in training-graph.ts. */

/**
 * Inputs. Inputs of entries and {@link INPUT.entropyWeight} have one tensor for each chunk of the head, and
 * {@link INPUT.visibleEnd} has one for each piece of the rows: see {@link chunkInput}.
 */
export const INPUT = {
  /** float32 [B, T, C]: the embedding rows of the tokens. */
  embedded: "embedded",
  /** int32 [B, T] */
  positionIds: "positionIds",
  /** int64 [1], only for training: number of float32 values for which memory is reserved at the start of the run. */
  reserved: "reserved",
  /** int32 [B, T] */
  visibleEnd: "visibleEnd",
  /** int32 [U]: distinct indices into B*T. */
  positions: "positions",
  /** int32 [E]: position of the chunk times V plus token; with a value head, the position. */
  choices: "choices",
  /** float32 [E]. The other inputs of the loss have their own names, see `TokenInput`. */
  weight: "weight",
  /** float32 [U]: factor of each position's entropy, subtracted from the loss. */
  entropyWeight: "entropyWeight",
} as const;

/** Outputs other than the gradients. */
export const OUTPUT = {
  /** float32 [] */
  loss: "loss",
  /** float32 [E]: log-probability of the entry's token, or with a value head its value. */
  score: "score",
  /** float32 [U], not with a value head. */
  entropy: "entropy",
  /** float32 [U], only where a forward pass is asked for it: sum over the vocabulary of p^2. */
  squares: "squares",
} as const;

/** Input that holds the values of one chunk of positions (head-loss.ts), or of one piece of the rows. */
export function chunkInput(name: string, chunk: number): string {
  return `${name}.${chunk}`;
}

/** Output that holds the gradient with respect to a parameter or to the embedded tokens. */
export function gradientOutput(name: string): string {
  return `gradient:${name}`;
}
