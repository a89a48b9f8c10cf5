/** Reads the answers of inference servers. A field that is missing or of another type is an error that names it. */

import { ServerRefusedError } from "../../domain/errors.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** Reads the fields of one answer. */
export class AnswerReader {
  readonly #server: string;
  readonly #action: string;

  constructor(server: string, action: string) {
    this.#server = server;
    this.#action = action;
  }

  fields(value: unknown, name: string): Fields {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
    throw this.broken(name, "an object", value);
  }

  list(value: unknown, name: string): readonly unknown[] {
    if (Array.isArray(value)) return value;
    throw this.broken(name, "a list", value);
  }

  number(value: unknown, name: string): number {
    if (typeof value === "number" && Number.isFinite(value)) return value;
    throw this.broken(name, "a number", value);
  }

  id(value: unknown, name: string): number {
    if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
    throw this.broken(name, "a token id", value);
  }

  text(value: unknown, name: string): string {
    if (typeof value === "string") return value;
    throw this.broken(name, "a text", value);
  }

  broken(name: string, wanted: string, found: unknown): ServerRefusedError {
    const shown = (JSON.stringify(found) ?? "nothing").slice(0, 100);
    return new ServerRefusedError(this.#server, this.#action, 200, `${name} is not ${wanted} but ${shown}`);
  }
}
