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
  const matrix = new Float64Array(size * size);
  for (let i = 0; i < size; i++) {
    matrix[i * size + i] = 1;
    rotateRow(matrix.subarray(i * size, (i + 1) * size), size);
  }
  return Array.from(matrix);
}

/** Rotates a row in place, block by block. */
export function rotateRow(row: Float64Array, block: number): void {
  const factor = 1 / Math.sqrt(block);
  for (let first = 0; first < row.length; first += block) {
    const end = first + block;
    for (let half = 1; half < block; half *= 2) {
      for (let at = first; at < end; at += 2 * half) {
        for (let i = at; i < at + half; i++) {
          const [a, b] = [row[i]!, row[i + half]!];
          row[i] = a + b;
          row[i + half] = a - b;
        }
      }
    }
    for (let i = first; i < end; i++) row[i]! *= factor;
  }
}
