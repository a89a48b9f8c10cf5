/** Rejects sliding-window attention, in which a token sees only the last tokens before it. Hone does not support it. */

import { ModelSpecError } from "../errors.ts";
import { booleanOr, type ModelConfig, numberOr, requireNumber } from "../model/config-fields.ts";

const RULE = "every layer sees the whole context (sliding windows are not built)";

/** @throws ModelSpecError if a layer has a window. A window that no layer uses is ignored. */
export function refuseSlidingWindow(config: ModelConfig): void {
  const layerTypes = config.layer_types;
  if (Array.isArray(layerTypes)) {
    const other = layerTypes.find((type) => type !== "full_attention");
    if (other !== undefined) throw new ModelSpecError("layer_types", RULE, other);
    return;
  }
  const isUsed = booleanOr(config, "use_sliding_window", false);
  const window = numberOr(config, "sliding_window", undefined);
  const firstLayer = numberOr(config, "max_window_layers", 0);
  if (isUsed && window !== undefined && firstLayer < requireNumber(config, "num_hidden_layers")) {
    throw new ModelSpecError("sliding_window", RULE, window);
  }
}
