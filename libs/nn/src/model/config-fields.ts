/** Reads fields of `config.json`. A field of the wrong type is an error that names the field. */
import { ModelSpecError, show } from "../errors.ts";

/** The parsed content of a Hugging Face `config.json`. */
export type ModelConfig = Readonly<Record<string, unknown>>;

/** @throws ModelSpecError if the field is missing or not a number. */
export function requireNumber(config: ModelConfig, field: string): number {
  const value = config[field];
  if (typeof value !== "number")
    throw new ModelSpecError(field, `${field} must be a number, but is ${show(value)}`);
  return value;
}

/** A number, or `fallback` if the field is missing or null. */
export function numberOr<T>(config: ModelConfig, field: string, fallback: T): number | T {
  return isGiven(config[field]) ? requireNumber(config, field) : fallback;
}

/** True or false, or `fallback` if the field is missing or null. */
export function booleanOr(config: ModelConfig, field: string, fallback: boolean): boolean {
  const value = config[field];
  if (!isGiven(value)) return fallback;
  if (typeof value !== "boolean") {
    throw new ModelSpecError(field, `${field} must be true or false, but is ${show(value)}`);
  }
  return value;
}

/** Token ids, given as one number or a list. Some checkpoints write -1 for no token. */
export function tokenIds(config: ModelConfig, field: string): number[] {
  const value = config[field] ?? [];
  const ids: unknown[] = Array.isArray(value) ? value : [value];
  return ids
    .map((id) => {
      if (typeof id !== "number") {
        throw new ModelSpecError(
          field,
          `${field} must be a token id or a list of them, but is ${show(value)}`,
        );
      }
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
