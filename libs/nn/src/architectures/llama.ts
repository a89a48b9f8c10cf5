/** Llama 1 to 3 and models with the same architecture, such as SmolLM2. */
import { booleanOr, numberOr, requireNumber } from "../model/config-fields.ts";
import { type Architecture, asLlama } from "./architecture.ts";

export const llama: Architecture = {
  family: "llama",
  className: "LlamaForCausalLM",
  readTraits: (config) => ({
    attentionBias: booleanOr(config, "attention_bias", false) ? "all" : "none",
    hasMlpBias: booleanOr(config, "mlp_bias", false),
    hasQkNorm: false,
    headDim: numberOr(
      config,
      "head_dim",
      Math.floor(requireNumber(config, "hidden_size") / requireNumber(config, "num_attention_heads")),
    ),
  }),
  writeTraits: (spec) => ({
    attention_bias: spec.attentionBias === "all",
    mlp_bias: spec.hasMlpBias,
    head_dim: spec.headDim,
  }),
  tensorName: asLlama,
};
