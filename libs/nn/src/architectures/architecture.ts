/** What tells one family of dense decoders from another. A new family is one file beside this one and a line in table.ts. */
import type { ModelConfig } from "../model/config-fields.ts";
import type { ModelFamily, ModelSpec } from "../model/model-spec.ts";

/** Parts of a model that a family decides or that only its configuration tells. */
export type FamilyTraits = Pick<ModelSpec, "attentionBias" | "hasMlpBias" | "hasQkNorm" | "headDim">;

export interface Architecture {
  readonly family: ModelFamily;
  /** Class in `transformers`, as `architectures` in config.json names it. */
  readonly className: string;
  /** @throws ModelSpecError for what would compute something else than Hone builds. */
  readTraits(config: ModelConfig): FamilyTraits;
  /** The fields of config.json that {@link Architecture.readTraits} reads back. */
  writeTraits(spec: ModelSpec): Record<string, unknown>;
  /** Name in the checkpoint of one of Hone's parameters, which are named as Llama's are. */
  tensorName(parameter: string): string;
}

/** For families whose checkpoints name everything as Llama's do. */
export function asLlama(parameter: string): string {
  return parameter;
}
