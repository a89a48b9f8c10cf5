/**
 * A row of logits for a draw: the weight of each token relative to the most likely one, and the sums of weights over blocks of
 * consecutive tokens, which show without reading a block that it has no likely token.
 *
 *   weight = exp(score)        score = logit / temperature - largest of the row
 */

/** Sums over a row of logits, with scaled = logit / temperature in float32, or scaled = logit at temperature 0. */
export interface RowMasses {
  /** The largest scaled logit. */
  readonly largest: number;
  /** [B] sums of exp(scaled - largest) over consecutive blocks of V/B tokens. */
  readonly blockMasses: Float32Array;
  /** The block in which a draw from the whole vocabulary falls. */
  readonly drawn?: DrawnBlock;
}

export interface DrawnBlock {
  /** Index of the block. */
  readonly block: number;
  /** [V/B] */
  readonly logits: Float32Array;
}

export interface SamplingRow {
  /** V tokens. */
  readonly size: number;
  /** [B] sums of weights of V/B tokens each, where the last block may be shorter; accurate to about 1e-6. */
  readonly blockMasses: ArrayLike<number>;
  /** Tokens in each block but the last. */
  readonly blockSize: number;
  /** At most 0, up to rounding. */
  scoreOf(id: number): number;
}

/** Block size of rows whose sums are computed here. */
const BLOCK_SIZE = 256;

/** The factor of logits when {@link RowMasses} are computed. */
export function inverseTemperature(temperature: number): number {
  return temperature === 0 ? 1 : Math.fround(1 / temperature);
}

/**
 * A row whose sums were given in float32; only the blocks that are needed are read.
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

/** A row that is read as a whole, in float64. */
export function readRow(logits: Float32Array, temperature: number, max: number): SamplingRow {
  const scoreOf = (id: number) => (logits[id]! - max) / temperature;
  const blockMasses = new Float64Array(Math.ceil(logits.length / BLOCK_SIZE));
  for (let id = 0; id < logits.length; id++)
    blockMasses[Math.floor(id / BLOCK_SIZE)]! += Math.exp(scoreOf(id));
  return { size: logits.length, blockMasses, blockSize: BLOCK_SIZE, scoreOf };
}
