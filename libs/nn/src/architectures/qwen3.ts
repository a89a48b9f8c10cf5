/** Dense Qwen3: norms on each head of queries and keys. Models that are trained from scratch belong to this family. */
import { booleanOr, numberOr } from "../model/config-fields.ts";
import { type Architecture, asLlama } from "./architecture.ts";
import { refuseSlidingWindow } from "./sliding-window.ts";

/** The default of `transformers` if a configuration does not state it. */
const DEFAULT_HEAD_DIM = 128;

export const qwen3: Architecture = {
  family: "qwen3",
  className: "Qwen3ForCausalLM",
  readTraits(config) {
    refuseSlidingWindow(config);
    return {
      attentionBias: booleanOr(config, "attention_bias", false) ? "all" : "none",
      hasMlpBias: false,
      hasQkNorm: true,
      headDim: numberOr(config, "head_dim", DEFAULT_HEAD_DIM),
    };
  },
  writeTraits: (spec) => ({
    head_dim: spec.headDim,
    attention_bias: spec.attentionBias === "all",
    use_sliding_window: false,
  }),
  tensorName: asLlama,
};
