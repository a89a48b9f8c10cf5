/** The differences between families of dense decoders. A new family needs a file beside this one and a line in table.ts. */
import type { ModelConfig } from "../model/config-fields.ts";
import type { ModelFamily, ModelSpec } from "../model/model-spec.ts";

/** Properties of a model that its family fixes or that are read in a different way for each family. */
export type FamilyTraits = Pick<ModelSpec, "attentionBias" | "hasMlpBias" | "hasQkNorm" | "headDim">;

export interface Architecture {
  readonly family: ModelFamily;
  /** Name of the language model's class in `transformers`, as in the field `architectures` of config.json. */
  readonly className: string;
  /** @throws ModelSpecError for options that would change the computation and that Hone does not support. */
  readTraits(config: ModelConfig): FamilyTraits;
  /** The fields of config.json that {@link Architecture.readTraits} reads back. */
  writeTraits(spec: ModelSpec): Record<string, unknown>;
  /** The name that one of Hone's parameters has in the checkpoint. Hone names parameters as Llama does. */
  tensorName(parameter: string): string;
}

/** The `tensorName` of families whose checkpoints use the same names as Llama's. */
export function asLlama(parameter: string): string {
  return parameter;
}
