/** Qwen2 and Qwen2.5: biases on queries, keys and values. */
import { numberOr, requireNumber } from "../model/config-fields.ts";
import { type Architecture, asLlama } from "./architecture.ts";
import { refuseSlidingWindow } from "./sliding-window.ts";

export const qwen2: Architecture = {
  family: "qwen2",
  className: "Qwen2ForCausalLM",
  readTraits(config) {
    refuseSlidingWindow(config);
    const headDim = Math.floor(
      requireNumber(config, "hidden_size") / requireNumber(config, "num_attention_heads"),
    );
    return {
      attentionBias: "inputs",
      hasMlpBias: false,
      hasQkNorm: false,
      headDim: numberOr(config, "head_dim", headDim),
    };
  },
  writeTraits: (spec) => ({ head_dim: spec.headDim, use_sliding_window: false }),
  tensorName: asLlama,
};
