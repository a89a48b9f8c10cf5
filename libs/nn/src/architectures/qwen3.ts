/** Qwen3, dense: norms on each head of queries and keys. Models made from scratch are of this family. */
import { booleanOr, numberOr } from "../model/config-fields.ts";
import { type Architecture, asLlama } from "./architecture.ts";
import { refuseSlidingWindow } from "./sliding-window.ts";

/** What `transformers` takes where a configuration does not say. */
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
