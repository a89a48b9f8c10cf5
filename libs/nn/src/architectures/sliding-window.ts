/** Rejects sliding-window attention, in which a token sees only the last tokens before it. Hone does not support it. */

import { ModelSpecError, show } from "../errors.ts";
import { booleanOr, type ModelConfig, numberOr, requireNumber } from "../model/config-fields.ts";

const RULE = "Hone supports only layers that attend to the whole context, without a sliding window";

/** @throws ModelSpecError if a layer has a window. A window that no layer uses is ignored. */
export function refuseSlidingWindow(config: ModelConfig): void {
  const layerTypes = config.layer_types;
  if (Array.isArray(layerTypes)) {
    const other = layerTypes.find((type) => type !== "full_attention");
    if (other !== undefined)
      throw new ModelSpecError("layer_types", `layer_types has ${show(other)}; ${RULE}`);
    return;
  }
  const isUsed = booleanOr(config, "use_sliding_window", false);
  const window = numberOr(config, "sliding_window", undefined);
  const firstLayer = numberOr(config, "max_window_layers", 0);
  if (isUsed && window !== undefined && firstLayer < requireNumber(config, "num_hidden_layers")) {
    throw new ModelSpecError("sliding_window", `sliding_window is ${window}; ${RULE}`);
  }
}
