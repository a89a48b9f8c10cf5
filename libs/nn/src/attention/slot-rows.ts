/**
 * What slots hold of each token in each layer: for every key/value head a row of its key, one of its value, and in eight bits one number
 * each that both are multiplied by.
 */

import { Concat, type DType, type EightBitType, type Graph, type Tensor } from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";

export type SlotRowName = "Keys" | "Values" | "KeyScales" | "ValueScales";

export interface SlotRow {
  readonly name: SlotRowName;
  readonly dtype: DType;
  /** Elements for each head. */
  readonly width: number;
  /** Whether slots hold the rows of {@link KEY_BLOCK} positions as columns: in blocks [width, KEY_BLOCK], as products read them. */
  readonly isBlocked?: boolean;
}

/** With fewer positions a block is not worth a product, and with more it takes longer to write a row. */
export const KEY_BLOCK = 32;

/** The rows of a token in a layer. @param eightBits the type of whole numbers in eight bits. @default in float32 */
export function slotRows(spec: ModelSpec, eightBits?: EightBitType): readonly SlotRow[] {
  const width = spec.headDim;
  if (eightBits === undefined) {
    return [
      { name: "Keys", dtype: "float32", width },
      { name: "Values", dtype: "float32", width },
    ];
  }
  return [
    { name: "Keys", dtype: eightBits, width, isBlocked: true },
    { name: "Values", dtype: eightBits, width },
    { name: "KeyScales", dtype: "float32", width: 1 },
    { name: "ValueScales", dtype: "float32", width: 1 },
  ];
}

/** Slots that are read in place, slots with room for new rows (in float32 only), and slots that several sequences read (in eight bits only). */
export type SlotKind = "context" | "joined" | "shared";

/** The name of an input. */
export function slotTensor(kind: SlotKind, name: SlotRowName, layer: number): string {
  return `${kind}${name}.${layer}`;
}

/** The name of the output with a kind of rows of all layers and new tokens, [layers, N, G, width]. */
export function newRowsTensor(name: SlotRowName): string {
  return `new${name}`;
}

/** The new rows of all layers, which become one output for each kind: onnxruntime takes longer to return many. */
export class NewSlotRows {
  readonly #rows = new Map<SlotRowName, Tensor[]>();

  /** @param rows of the next layer [1, N, G, width] */
  add(name: SlotRowName, rows: Tensor): void {
    this.#rows.set(name, [...(this.#rows.get(name) ?? []), rows]);
  }

  output(graph: Graph): void {
    for (const [name, rows] of this.#rows) graph.output(newRowsTensor(name), Concat(rows, 0));
  }
}
