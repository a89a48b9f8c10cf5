/**
 * How the keys and values of a large model's tokens lie in memory: the same in the pool, in slots, and in what a run returns.
 *
 * A token has a row in each part: the keys of layer 0, 1, ..., then the values, and in eight bits both their scales (slot-rows.ts in @hone/nn).
 * A row has the same number of words of 32 bits for each of G key/value heads, which are copied without looking at their type.
 */

import {
  type ModelSpec,
  newRowsTensor,
  PAGE_ROWS,
  type SlotKind,
  type SlotRow,
  type SlotRowName,
  slotRows,
  slotTensor,
} from "@hone/nn";
import { DTYPES, type EightBitType, type TensorData } from "@hone/tensor";

export interface RowPart {
  readonly row: SlotRow;
  readonly layer: number;
  /** Words of a head. */
  readonly headWords: number;
  /** Words of all heads. */
  readonly words: number;
  /** Words of a page before this part. */
  readonly inPage: number;
  /** Whether words are numbers that may not be finite. */
  readonly isFloat: boolean;
}

const WORD_BYTES = Int32Array.BYTES_PER_ELEMENT;

export class RowLayout {
  readonly groups: number;
  readonly layers: number;
  readonly parts: readonly RowPart[];
  /** Words of {@link PAGE_ROWS} tokens. */
  readonly pageWords: number;
  readonly #names: readonly SlotRowName[];

  /** @param eightBits the type of whole numbers in eight bits. @default in float32 @throws {RangeError} unless {@link fitsBytes} then */
  constructor(spec: ModelSpec, eightBits?: EightBitType) {
    if (eightBits !== undefined && !fitsBytes(spec)) {
      const rule = `heads must have a multiple of ${WORD_BYTES} channels in eight bits, but have ${spec.headDim}`;
      throw new RangeError(`${rule}; generate in float32 (rollout.quantization: none)`);
    }
    const rows = slotRows(spec, eightBits);
    this.groups = spec.numKeyValueHeads;
    this.layers = spec.numLayers;
    this.#names = rows.map(({ name }) => name);
    const parts: RowPart[] = [];
    let inPage = 0;
    for (const row of rows) {
      const headWords = (row.width * DTYPES[row.dtype].bytes) / WORD_BYTES;
      const words = this.groups * headWords;
      for (let layer = 0; layer < spec.numLayers; layer++, inPage += PAGE_ROWS * words)
        parts.push({ row, layer, headWords, words, inPage, isFloat: row.dtype === "float32" });
    }
    this.parts = parts;
    this.pageWords = inPage;
  }

  /** The part with one kind of rows of a layer. */
  indexOf(name: SlotRowName, layer: number): number {
    return this.#names.indexOf(name) * this.layers + layer;
  }

  /** The names of each part's input. */
  tensors(kind: SlotKind): string[] {
    return this.parts.map(({ row, layer }) => slotTensor(kind, row.name, layer));
  }

  /** The names of the outputs with new rows. */
  get newTensors(): string[] {
    return this.#names.map(newRowsTensor);
  }

  /** The new rows of each part. @param outputs those of {@link newTensors} */
  newRows(outputs: readonly TensorData[]): Int32Array[] {
    const kinds = outputs.map(asWords);
    return this.parts.map(({ layer }, index) => {
      const kind = kinds[Math.floor(index / this.layers)]!;
      const size = kind.length / this.layers;
      return kind.subarray(layer * size, (layer + 1) * size);
    });
  }

  /** Bytes of one token's rows in all parts. */
  get tokenBytes(): number {
    return (this.pageWords / PAGE_ROWS) * WORD_BYTES;
  }
}

/** Whether a head's key in eight bits is a whole number of words. */
export function fitsBytes(spec: ModelSpec): boolean {
  return spec.headDim % WORD_BYTES === 0;
}

/** The words of a part as numbers of its type. */
export function asRowData({ row }: RowPart, words: Int32Array): TensorData {
  const { buffer, byteOffset, byteLength } = words;
  switch (row.dtype) {
    case "float32":
      return new Float32Array(buffer, byteOffset, words.length);
    case "int8":
      return new Int8Array(buffer, byteOffset, byteLength);
    default:
      return new Uint8Array(buffer, byteOffset, byteLength);
  }
}

/** Numbers that a run returned as words. */
export function asWords({ buffer, byteOffset, byteLength }: TensorData): Int32Array {
  return new Int32Array(buffer, byteOffset, byteLength / WORD_BYTES);
}
