/** The families that Hone supports. */

import { ModelSpecError, show } from "../errors.ts";
import type { ModelConfig } from "../model/config-fields.ts";
import type { ModelFamily, ModelHead } from "../model/model-spec.ts";
import type { Architecture } from "./architecture.ts";
import { llama } from "./llama.ts";
import { qwen2 } from "./qwen2.ts";
import { qwen3 } from "./qwen3.ts";

const ARCHITECTURES: Readonly<Record<ModelFamily, Architecture>> = { llama, qwen2, qwen3 };

export function architectureOf(family: ModelFamily): Architecture {
  return ARCHITECTURES[family];
}

/** A family's class in `transformers` for each head. A critic is a classifier of tokens with one label. */
export function classNameOf({ className }: Architecture, head: ModelHead): string {
  return head === "value" ? className.replace(/ForCausalLM$/, "ForTokenClassification") : className;
}

/** @throws ModelSpecError that lists the known architectures. */
export function architectureOfConfig(config: ModelConfig): {
  readonly architecture: Architecture;
  readonly head: ModelHead;
} {
  const named: unknown = Array.isArray(config.architectures) ? config.architectures[0] : undefined;
  const all = Object.values(ARCHITECTURES);
  for (const architecture of all) {
    for (const head of ["language", "value"] as const) {
      if (classNameOf(architecture, head) === named) return { architecture, head };
    }
  }
  const known = all.map(({ className }) => className).join(", ");
  const problem = `architectures is ${show(config.architectures)}; Hone supports ${known}`;
  throw new ModelSpecError("architectures", problem);
}
