/**
 * Low-rank adapters (LoRA, https://arxiv.org/abs/2106.09685): a trained product of rank r is added to a projection
 * W [out, in], which itself is not trained,
 *
 *   y = x W^T + (alpha / r) (x A^T) B^T        A [r, in], B [out, r]
 *
 * Names, shapes and initial values are those of PEFT: A is random and B is 0, so that a new adapter changes nothing.
 */
import { deriveSeed, Random } from "@hone/core";
import { ModelSpecError } from "../errors.ts";
import type { ModelSpec } from "./model-spec.ts";
import { layerParameter, listParameters, type ParameterInfo, parameterSize } from "./parameters.ts";

/** The projections of a layer that can be adapted, by the names that run files and PEFT use. */
export const LORA_TARGETS = {
  q_proj: "self_attn.q_proj",
  k_proj: "self_attn.k_proj",
  v_proj: "self_attn.v_proj",
  o_proj: "self_attn.o_proj",
  gate_proj: "mlp.gate_proj",
  up_proj: "mlp.up_proj",
  down_proj: "mlp.down_proj",
} as const;
export type LoraTarget = keyof typeof LORA_TARGETS;

/** Stands for all of these projections. The head and the embedding cannot be adapted. */
export const ALL_LINEAR = "all-linear";

export interface LoraSpec {
  /** Rank of the adapters, r. */
  readonly rank: number;
  /** The product of an adapter is multiplied by alpha / rank. */
  readonly alpha: number;
  /** The adapted projections, the same in every layer: distinct, and in the order of {@link LORA_TARGETS}. */
  readonly targets: readonly LoraTarget[];
}

/** A description of adapters, which {@link resolveLora} completes. */
export interface LoraInput {
  readonly rank: number;
  readonly alpha: number;
  readonly targets: typeof ALL_LINEAR | readonly string[];
}

/** The tensors of one adapter in a graph; see the formula above. */
export type AdapterPart = "lora_A" | "lora_B";

/** PEFT's prefix for the names in the model that it wraps. */
const PREFIX = "base_model.model.";

/** Checks and completes a description. @throws ModelSpecError that names the wrong field. */
export function resolveLora({ rank, alpha, targets }: LoraInput): LoraSpec {
  if (!Number.isInteger(rank) || rank < 1) {
    throw new ModelSpecError("rank", `the rank of adapters must be a whole number above 0, but is ${rank}`);
  }
  if (!(alpha > 0 && Number.isFinite(alpha))) {
    throw new ModelSpecError("alpha", `alpha of adapters must be a number above 0, but is ${alpha}`);
  }
  const all = Object.keys(LORA_TARGETS) as LoraTarget[];
  if (typeof targets === "string") return { rank, alpha, targets: all };
  const unknown = targets.find((target) => !Object.hasOwn(LORA_TARGETS, target));
  if (unknown !== undefined || targets.length === 0) {
    const found = unknown === undefined ? "none is given" : `found ${JSON.stringify(unknown)}`;
    throw new ModelSpecError(
      "targets",
      `the targets of adapters must be some of ${all.join(", ")}; ${found}`,
    );
  }
  return { rank, alpha, targets: all.filter((target) => targets.includes(target)) };
}

/** Name of an adapter's tensor on a projection of a layer, such as `adapterParameter(0, "self_attn.q_proj", "lora_A")`. */
export function adapterParameter(layer: number, part: string, which: AdapterPart): string {
  return `${PREFIX}${layerParameter(layer, part).replace(/weight$/, `${which}.weight`)}`;
}

/** The weight that an adapter's tensor adapts; undefined for other names. */
export function adaptedParameter(name: string): string | undefined {
  const [, inner] = /^base_model\.model\.(.+)\.lora_[AB]\.weight$/.exec(name) ?? [];
  return inner === undefined ? undefined : `${inner}.weight`;
}

/** The adapters' tensors, which are trained instead of the model's, in the order of the layers. */
export function listAdapterParameters(spec: ModelSpec, { rank, targets }: LoraSpec): ParameterInfo[] {
  const shapes = new Map(listParameters(spec).map(({ name, shape }) => [name, shape]));
  return Array.from({ length: spec.numLayers }, (_, layer) => layer).flatMap((layer) =>
    targets.flatMap((target): ParameterInfo[] => {
      const part = LORA_TARGETS[target];
      const [out, inner] = shapes.get(layerParameter(layer, part)) as [number, number];
      return [
        { name: adapterParameter(layer, part, "lora_A"), shape: [rank, inner], kind: "matrix" },
        { name: adapterParameter(layer, part, "lora_B"), shape: [out, rank], kind: "matrix" },
      ];
    }),
  );
}

/** The trained parameters: those of the adapters if there are any, else all parameters of the model. */
export function listTrained({ spec, lora }: AdaptedModel): ParameterInfo[] {
  return lora === undefined ? listParameters(spec) : listAdapterParameters(spec, lora);
}

/** A model with the adapters that are trained instead of it; without adapters, the model itself is trained. */
export interface AdaptedModel {
  readonly spec: ModelSpec;
  readonly lora?: LoraSpec | undefined;
}

/** All parameters that the computation uses. */
export function listAll({ spec, lora }: AdaptedModel): ParameterInfo[] {
  return lora === undefined
    ? listParameters(spec)
    : [...listParameters(spec), ...listAdapterParameters(spec, lora)];
}

/**
 * Initial values of adapters: A is uniform in ±1 / sqrt(in), which is PEFT's Kaiming uniform with a = sqrt(5), and B is zero.
 * The random generator of each tensor is seeded with the tensor's name, so its values do not depend on the other targets.
 */
export function initialiseAdapters(
  spec: ModelSpec,
  lora: LoraSpec,
  seed: number,
): Record<string, Float32Array> {
  const adapters: Record<string, Float32Array> = {};
  for (const parameter of listAdapterParameters(spec, lora)) {
    const values = new Float32Array(parameterSize(parameter));
    if (parameter.name.endsWith("lora_A.weight")) {
      const bound = 1 / Math.sqrt(parameter.shape[1]!);
      const random = new Random(deriveSeed(seed, "adapter", parameter.name));
      for (let i = 0; i < values.length; i++) values[i] = (2 * random.next() - 1) * bound;
    }
    adapters[parameter.name] = values;
  }
  return adapters;
}
