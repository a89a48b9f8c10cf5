/** Reading `config.json`: each field as what it must be, or an error that names it. */
import { ModelSpecError } from "../errors.ts";

/** A Hugging Face `config.json`, as it was parsed. */
export type ModelConfig = Readonly<Record<string, unknown>>;

/** @throws ModelSpecError where the field is missing or no number. */
export function requireNumber(config: ModelConfig, field: string): number {
  const value = config[field];
  if (typeof value !== "number") throw new ModelSpecError(field, "it is a number", value);
  return value;
}

/** A number, or `fallback` where the field is missing or null. */
export function numberOr<T>(config: ModelConfig, field: string, fallback: T): number | T {
  return isGiven(config[field]) ? requireNumber(config, field) : fallback;
}

/** True or false, or `fallback` where the field is missing or null. */
export function booleanOr(config: ModelConfig, field: string, fallback: boolean): boolean {
  const value = config[field];
  if (!isGiven(value)) return fallback;
  if (typeof value !== "boolean") throw new ModelSpecError(field, "it is true or false", value);
  return value;
}

/** Token ids as one number or a list. Some checkpoints write -1 for none. */
export function tokenIds(config: ModelConfig, field: string): number[] {
  const value = config[field] ?? [];
  const ids: unknown[] = Array.isArray(value) ? value : [value];
  return ids
    .map((id) => {
      if (typeof id !== "number") throw new ModelSpecError(field, "token ids are numbers", value);
      return id;
    })
    .filter((id) => id >= 0);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
