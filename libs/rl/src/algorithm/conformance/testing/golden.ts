/** The golden cases: inputs, parameters and expected values of the systems that the algorithms come from. */

import { readFileSync } from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";

export type Matrix = readonly (readonly number[])[];

export interface GoldenCase {
  /** `system/family/what/inputs/variant`. */
  readonly name: string;
  readonly function: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly tolerance: { readonly relative: number; readonly absolute: number; readonly metrics: number };
  readonly expected: Readonly<Record<string, unknown>>;
  readonly quirks?: readonly string[];
}

interface Golden {
  readonly inputs: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly cases: readonly GoldenCase[];
}

const FILE = path.join(import.meta.dirname, "../../../../fixtures/golden-rl.json.gz");

export const golden = JSON.parse(gunzipSync(readFileSync(FILE)).toString()) as Golden;

/** `verl/advantage` of a case. */
export function familyOf({ name }: GoldenCase): string {
  return name.split("/").slice(0, 2).join("/");
}

/** One case with its inputs looked up. */
export class Question {
  readonly golden: GoldenCase;

  constructor(goldenCase: GoldenCase) {
    this.golden = goldenCase;
  }

  /** An input that is a matrix of rows by positions. */
  matrix(name: string): Matrix {
    return this.#input(name) as Matrix;
  }

  /** An input that is one number for each row. */
  vector(name: string): readonly number[] {
    return this.#input(name) as readonly number[];
  }

  /** An input that is one name for each row. */
  names(name: string): readonly string[] {
    return (this.#input(name) as readonly (string | number)[]).map(String);
  }

  has(name: string): boolean {
    return this.golden.inputs[name] !== undefined;
  }

  /** Another array of the set that the case's inputs are from, such as the mask that a function did not take. */
  ofSet<T>(name: string): T {
    const reference = Object.values(this.golden.inputs).find((value) => typeof value === "string");
    return this.#rows(golden.inputs[String(reference).split(".")[0]!]![name]) as T;
  }

  /** An array of a set that the case does not name. */
  ofOtherSet<T>(set: string, name: string): T {
    return this.#rows(golden.inputs[set]![name]) as T;
  }

  number(parameter: string): number {
    return this.golden.parameters[parameter] as number;
  }

  text(parameter: string): string {
    return this.golden.parameters[parameter] as string;
  }

  flag(parameter: string): boolean {
    return this.golden.parameters[parameter] === true;
  }

  optionalNumber(parameter: string): number | undefined {
    return (this.golden.parameters[parameter] as number | null | undefined) ?? undefined;
  }

  expected<T = Matrix>(field: string): T {
    return this.golden.expected[field] as T;
  }

  hasQuirk(quirk: string): boolean {
    return this.golden.quirks?.includes(quirk) ?? false;
  }

  #input(name: string): unknown {
    const input = this.golden.inputs[name];
    if (typeof input !== "string") return input;
    const [set, key] = input.split(".");
    return this.#rows(golden.inputs[set!]![key!]);
  }

  /** Some cases take part of the rows. */
  #rows(values: unknown): unknown {
    const rows = this.golden.parameters.rows as [number, number] | undefined;
    return rows === undefined ? values : (values as unknown[]).slice(...rows);
  }
}
