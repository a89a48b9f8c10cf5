/** Reads and writes PEFT's adapter_config.json. */
import { LORA_TARGETS, type LoraSpec, type LoraTarget, ModelSpecError, resolveLora } from "@hone/nn";
import { CheckpointError, quoteStart } from "./errors.ts";

export const ADAPTER_CONFIG_FILE = "adapter_config.json";

/** The base model of an adapter, as the adapter's folder names it. */
export interface BaseReference {
  /** A model id of the hub, an absolute path, or a path relative to the adapter's folder, which then begins with a dot. */
  readonly place: string;
  /** Branch, tag or commit of a model on the hub. */
  readonly revision?: string | undefined;
}

export interface AdapterDescription {
  readonly lora: LoraSpec;
  readonly base: BaseReference;
}

/** Options with which PEFT computes something that Hone does not; each must be absent, empty or false. */
const REFUSED = [
  "alora_invocation_tokens",
  "alpha_pattern",
  "arrow_config",
  "fan_in_fan_out",
  "kasa_config",
  "layer_replication",
  "lora_bias",
  "modules_to_save",
  "monteclora_config",
  "rank_pattern",
  "target_parameters",
  "trainable_token_indices",
  "use_bdlora",
  "use_dora",
  "use_qalora",
  "use_rslora",
  "velora_config",
] as const;
/** Initialisations that leave the base model as it is; others, such as pissa, change it. */
const FIRST_VALUES: readonly unknown[] = [undefined, null, true, false, "gaussian"];

/**
 * Reads a configuration.
 * @param parameters names of the adapter's tensors. They decide which projections are adapted, because the configuration
 *   may name projections by patterns.
 * @throws CheckpointError that names the field that Hone does not support.
 */
export function parseAdapterConfig(
  text: string,
  file: string,
  parameters: readonly string[],
): AdapterDescription {
  const config = parseObject(text, file);
  const require = (isAllowed: boolean, field: string, rule: string) => {
    if (!isAllowed) {
      const found = JSON.stringify(config[field] ?? null);
      throw new CheckpointError(file, `${field} is ${found}; Hone reads only adapters where it ${rule}`);
    }
  };
  require(config.peft_type === "LORA", "peft_type", 'is "LORA"');
  require(config.bias === undefined || config.bias === "none", "bias", 'is "none"');
  require(FIRST_VALUES.includes(
    config.init_lora_weights,
  ), "init_lora_weights", 'is true, false or "gaussian"');
  for (const field of REFUSED) require(isNeutral(config[field]), field, "is absent, null, false or empty");
  const { base_model_name_or_path: place, revision, r: rank, lora_alpha: alpha } = config;
  require(typeof place === "string" && place !== "", "base_model_name_or_path", "names the base model");
  const targets = (Object.keys(LORA_TARGETS) as LoraTarget[]).filter((target) =>
    parameters.some((name) => name.includes(`.${LORA_TARGETS[target]}.lora_`)),
  );
  try {
    const lora = resolveLora({ rank: Number(rank), alpha: Number(alpha), targets });
    return { lora, base: { place: String(place), ...(typeof revision === "string" ? { revision } : {}) } };
  } catch (cause) {
    if (!(cause instanceof ModelSpecError)) throw cause;
    throw new CheckpointError(file, `Hone cannot build these adapters (${cause.message})`, { cause });
  }
}

/** The text of a configuration, with the fields that PEFT writes and reads. */
export function adapterConfigText({ lora, base }: AdapterDescription): string {
  const config = {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    base_model_name_or_path: base.place,
    revision: base.revision ?? null,
    inference_mode: true,
    r: lora.rank,
    lora_alpha: lora.alpha,
    lora_dropout: 0,
    target_modules: lora.targets,
    bias: "none",
    fan_in_fan_out: false,
    init_lora_weights: true,
    modules_to_save: null,
    layers_to_transform: null,
    layers_pattern: null,
    rank_pattern: {},
    alpha_pattern: {},
    use_rslora: false,
    use_dora: false,
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

function isNeutral(value: unknown): boolean {
  if (value === undefined || value === null || value === false) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

function parseObject(text: string, file: string): Record<string, unknown> {
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch (cause) {
    throw new CheckpointError(file, `the file must be JSON, but begins with ${quoteStart(text)}`, { cause });
  }
  if (typeof config === "object" && config !== null && !Array.isArray(config)) {
    return config as Record<string, unknown>;
  }
  throw new CheckpointError(file, `the file must be a JSON object, but begins with ${quoteStart(text)}`);
}
