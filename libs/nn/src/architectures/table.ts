/** The families that Hone supports. */

import { ModelSpecError, show } from "../errors.ts";
import type { ModelConfig } from "../model/config-fields.ts";
import type { ModelFamily } from "../model/model-spec.ts";
import type { Architecture } from "./architecture.ts";
import { llama } from "./llama.ts";
import { qwen2 } from "./qwen2.ts";
import { qwen3 } from "./qwen3.ts";

const ARCHITECTURES: Readonly<Record<ModelFamily, Architecture>> = { llama, qwen2, qwen3 };

export function architectureOf(family: ModelFamily): Architecture {
  return ARCHITECTURES[family];
}

/** @throws ModelSpecError that lists the known architectures. */
export function architectureOfConfig(config: ModelConfig): Architecture {
  const named: unknown = Array.isArray(config.architectures) ? config.architectures[0] : undefined;
  const all = Object.values(ARCHITECTURES);
  const found = all.find(({ className }) => className === named);
  if (found !== undefined) return found;
  const known = all.map(({ className }) => className).join(", ");
  const problem = `architectures is ${show(config.architectures)}; Hone supports ${known}`;
  throw new ModelSpecError("architectures", problem);
}
