/**
 * Rotations that spread large values over their neighbours before rows are rounded, as in QuaRot
 * (https://arxiv.org/abs/2404.00456): y = x W^T = (x R)(W R)^T for every orthogonal R. A few channels of a language model are tens of
 * times larger than the others, and would leave these only a few of the 255 steps of eight bits.
 *
 * R has blocks of a Hadamard matrix along its diagonal, so that rotating a row costs little and width need not be a power of two.
 */

/** With larger blocks the error falls little further. */
const MAX_BLOCK = 64;

/** The size of the blocks for rows of a width: the largest power of two that divides it, at most {@link MAX_BLOCK}. */
export function rotationBlock(width: number): number {
  let block = 1;
  while (block < MAX_BLOCK && width % (2 * block) === 0) block *= 2;
  return block;
}

/** The orthonormal Hadamard matrix of a power of two (Sylvester's), row by row. It is its own inverse. */
export function hadamardMatrix(size: number): number[] {
  const value = 1 / Math.sqrt(size);
  const at = (row: number, column: number) => (isOdd(row & column) ? -value : value);
  return Array.from({ length: size * size }, (_, i) => at(Math.floor(i / size), i % size));
}

/** Whether a number has an odd number of ones as bits. */
function isOdd(bits: number): boolean {
  let ones = 0;
  for (let rest = bits; rest > 0; rest >>= 1) ones += rest & 1;
  return ones % 2 === 1;
}
