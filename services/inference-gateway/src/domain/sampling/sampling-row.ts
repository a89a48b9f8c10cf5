/**
 * A row of logits as a draw sees it: of every token the weight relative to the most likely one, and sums of weights
 * over blocks of consecutive tokens, which tell where no token can be likely without reading it.
 *
 *   weight = exp(score)        score = logit / temperature - largest of the row
 */

/** Sums over a row of logits at its temperature (at 0: 1), with scaled = logit / temperature in float32. */
export interface RowMasses {
  /** The largest scaled logit. */
  readonly largest: number;
  /** [B] sums of exp(scaled - largest) over consecutive blocks of V/B tokens. */
  readonly blockMasses: Float32Array;
  /** The block that a draw from all tokens is made in. */
  readonly drawn?: DrawnBlock;
}

export interface DrawnBlock {
  /** Which of the B. */
  readonly block: number;
  /** [V/B] */
  readonly logits: Float32Array;
}

export interface SamplingRow {
  /** V tokens. */
  readonly size: number;
  /** [B] sums of weights of V/B tokens each, the last block maybe shorter; true to about 1e-6. */
  readonly blockMasses: ArrayLike<number>;
  /** The tokens of a block, but for the last. */
  readonly blockSize: number;
  /** At most 0, up to rounding. */
  scoreOf(id: number): number;
}

/** Blocks of rows whose sums are made here. */
const BLOCK_SIZE = 256;

/** What logits are multiplied with where {@link RowMasses} are computed. */
export function inverseTemperature(temperature: number): number {
  return temperature === 0 ? 1 : Math.fround(1 / temperature);
}

/**
 * A row whose sums came with it, in float32: only what is asked for is read.
 * @param logits of the row, or of its tokens from `first` on.
 */
export function summedRow(
  logits: Float32Array,
  temperature: number,
  { largest, blockMasses }: RowMasses,
  blockSize: number,
  first = 0,
): SamplingRow {
  const scale = inverseTemperature(temperature);
  return {
    size: blockSize * blockMasses.length,
    blockMasses,
    blockSize,
    scoreOf: (id) => Math.fround(logits[id - first]! * scale) - largest,
  };
}

/** A row that is read here as a whole, in float64. */
export function readRow(logits: Float32Array, temperature: number, max: number): SamplingRow {
  const scoreOf = (id: number) => (logits[id]! - max) / temperature;
  const blockMasses = new Float64Array(Math.ceil(logits.length / BLOCK_SIZE));
  for (let id = 0; id < logits.length; id++)
    blockMasses[Math.floor(id / BLOCK_SIZE)]! += Math.exp(scoreOf(id));
  return { size: logits.length, blockMasses, blockSize: BLOCK_SIZE, scoreOf };
}
