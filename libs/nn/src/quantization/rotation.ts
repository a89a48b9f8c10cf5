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

/** Rotates a row in place, block by block. Model weights are many, so three of the transform's stages are done at a time. */
export function rotateRow(row: Float64Array, block: number): void {
  let half = 1;
  for (; 8 * half <= block; half *= 8) threeStages(row, half);
  for (; half < block; half *= 2) oneStage(row, half);
  if (block === 1) return;
  const factor = 1 / Math.sqrt(block);
  for (let i = 0; i < row.length; i++) row[i]! *= factor;
}

/** Sums and differences of the values that are `half` apart. */
function oneStage(row: Float64Array, half: number): void {
  for (let at = 0; at < row.length; at += 2 * half) {
    for (let i = at; i < at + half; i++) {
      const [a, b] = [row[i]!, row[i + half]!];
      row[i] = a + b;
      row[i + half] = a - b;
    }
  }
}

/** The stages of `half`, 2 `half` and 4 `half`. */
function threeStages(row: Float64Array, half: number): void {
  for (let at = 0; at < row.length; at += 8 * half) {
    for (let i = at; i < at + half; i++) {
      const a0 = row[i]!;
      const a1 = row[i + half]!;
      const a2 = row[i + 2 * half]!;
      const a3 = row[i + 3 * half]!;
      const a4 = row[i + 4 * half]!;
      const a5 = row[i + 5 * half]!;
      const a6 = row[i + 6 * half]!;
      const a7 = row[i + 7 * half]!;
      const b0 = a0 + a1;
      const b1 = a0 - a1;
      const b2 = a2 + a3;
      const b3 = a2 - a3;
      const b4 = a4 + a5;
      const b5 = a4 - a5;
      const b6 = a6 + a7;
      const b7 = a6 - a7;
      const c0 = b0 + b2;
      const c1 = b1 + b3;
      const c2 = b0 - b2;
      const c3 = b1 - b3;
      const c4 = b4 + b6;
      const c5 = b5 + b7;
      const c6 = b4 - b6;
      const c7 = b5 - b7;
      row[i] = c0 + c4;
      row[i + half] = c1 + c5;
      row[i + 2 * half] = c2 + c6;
      row[i + 3 * half] = c3 + c7;
      row[i + 4 * half] = c0 - c4;
      row[i + 5 * half] = c1 - c5;
      row[i + 6 * half] = c2 - c6;
      row[i + 7 * half] = c3 - c7;
    }
  }
}
