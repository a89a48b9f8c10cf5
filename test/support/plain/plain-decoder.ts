/**
 * A Qwen3 decoder written plainly, in float64 and without any of Hone's code, for tests that compute again what engines computed.
 *
 * Letters: T tokens, C hidden size, H heads, K heads of keys and values, D size of a head.
 */

import { readFileSync } from "node:fs";
import path from "node:path";

export interface PlainModel {
  readonly tensors: ReadonlyMap<string, Float32Array>;
  readonly numLayers: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly eps: number;
  readonly ropeTheta: number;
}

/** Reads model.safetensors in float32 from a folder. @param configFolder that of config.json, where it is another one. */
export function readPlainModel(folder: string, configFolder = folder): PlainModel {
  const config = JSON.parse(readFileSync(path.join(configFolder, "config.json"), "utf8"));
  const bytes = readFileSync(path.join(folder, "model.safetensors"));
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString("utf8")) as Record<
    string,
    { readonly dtype: string; readonly data_offsets: readonly [number, number] }
  >;
  const tensors = new Map<string, Float32Array>();
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    if (entry.dtype !== "F32") throw new Error(`${name} is of the type ${entry.dtype}, and F32 is read here`);
    const [begin, end] = entry.data_offsets;
    tensors.set(
      name,
      new Float32Array(Uint8Array.from(bytes.subarray(8 + length + begin, 8 + length + end)).buffer),
    );
  }
  return {
    tensors,
    numLayers: config.num_hidden_layers,
    numHeads: config.num_attention_heads,
    numKvHeads: config.num_key_value_heads,
    headDim: config.head_dim,
    eps: config.rms_norm_eps,
    ropeTheta: config.rope_theta ?? config.rope_parameters?.rope_theta,
  };
}

/** [T - 1] log-probability of each token but the first, at temperature 1. */
export function plainLogprobs(model: PlainModel, tokenIds: readonly number[]): number[] {
  const embedding = tensor(model, "model.embed_tokens.weight");
  const head = model.tensors.get("lm_head.weight") ?? embedding;
  const hidden = tensor(model, "model.norm.weight").length;
  let rows = tokenIds.map((id) => [...embedding.subarray(id * hidden, (id + 1) * hidden)]);
  for (let layer = 0; layer < model.numLayers; layer++) rows = decoderLayer(model, layer, rows);
  return tokenIds.slice(1).map((next, at) => {
    const logits = times(head, normed(rows[at]!, tensor(model, "model.norm.weight"), model.eps));
    const largest = Math.max(...logits);
    const sum = logits.reduce((total, logit) => total + Math.exp(logit - largest), 0);
    return logits[next]! - largest - Math.log(sum);
  });
}

function decoderLayer(model: PlainModel, layer: number, rows: readonly number[][]): number[][] {
  const weight = (name: string) => tensor(model, `model.layers.${layer}.${name}.weight`);
  const { numHeads, numKvHeads, headDim, eps } = model;
  const inputs = rows.map((row) => normed(row, weight("input_layernorm"), eps));
  const heads = (name: string, count: number, norm?: string) =>
    inputs.map((row, at) => {
      const all = times(weight(`self_attn.${name}`), row);
      return Array.from({ length: count }, (_, head) => {
        const part = all.slice(head * headDim, (head + 1) * headDim);
        return norm === undefined ? part : rotated(model, normed(part, weight(`self_attn.${norm}`), eps), at);
      });
    });
  const queries = heads("q_proj", numHeads, "q_norm");
  const keys = heads("k_proj", numKvHeads, "k_norm");
  const values = heads("v_proj", numKvHeads);
  const attended = rows.map((row, at) => {
    const mixed = Array.from({ length: numHeads }, (_, head) => {
      const shared = Math.floor((head * numKvHeads) / numHeads);
      const scores = Array.from(
        { length: at + 1 },
        (_, other) => dot(queries[at]![head]!, keys[other]![shared]!) / Math.sqrt(headDim),
      );
      const largest = Math.max(...scores);
      const weights = scores.map((score) => Math.exp(score - largest));
      const total = weights.reduce((sum, each) => sum + each, 0);
      return Array.from({ length: headDim }, (_, d) =>
        weights.reduce((sum, each, other) => sum + (each / total) * values[other]![shared]![d]!, 0),
      );
    }).flat();
    return added(row, times(weight("self_attn.o_proj"), mixed));
  });
  return attended.map((row) => {
    const input = normed(row, weight("post_attention_layernorm"), eps);
    const gate = times(weight("mlp.gate_proj"), input);
    const up = times(weight("mlp.up_proj"), input);
    const inner = gate.map((value, i) => (value / (1 + Math.exp(-value))) * up[i]!);
    return added(row, times(weight("mlp.down_proj"), inner));
  });
}

function tensor({ tensors }: PlainModel, name: string): Float32Array {
  const found = tensors.get(name);
  if (found === undefined) throw new Error(`the model has no ${name}`);
  return found;
}

/** The product of a matrix [rows, columns] and a vector [columns]. */
function times(matrix: Float32Array, vector: readonly number[]): number[] {
  const columns = vector.length;
  return Array.from({ length: matrix.length / columns }, (_, row) => {
    let sum = 0;
    for (let column = 0; column < columns; column++) sum += matrix[row * columns + column]! * vector[column]!;
    return sum;
  });
}

function normed(row: readonly number[], scale: Float32Array, eps: number): number[] {
  const mean = dot(row, row) / row.length;
  return row.map((value, i) => (value / Math.sqrt(mean + eps)) * scale[i]!);
}

/** Rotary positions: the first half of a head is rotated with the second. */
function rotated({ headDim, ropeTheta }: PlainModel, head: readonly number[], position: number): number[] {
  const half = headDim / 2;
  return head.map((value, d) => {
    const angle = position * ropeTheta ** ((-2 * (d % half)) / headDim);
    const other = d < half ? -head[d + half]! : head[d - half]!;
    return value * Math.cos(angle) + other * Math.sin(angle);
  });
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0);
}

function added(a: readonly number[], b: readonly number[]): number[] {
  return a.map((value, i) => value + b[i]!);
}
