/** Reads the tests of a row from its ground truth, in the forms of common data sets. */

import { parseJson } from "@hone/core";
import { z } from "zod";
import { JudgeError } from "../../../errors.ts";

/** A test as grading.py takes it. */
export type CodeTest =
  /** Python code that raises an error if the answer is wrong. */
  | { readonly code: string; readonly entry_point?: string; readonly in_place?: boolean }
  /** A call and its expected value. */
  | { readonly name: string; readonly args: readonly unknown[]; readonly expected: unknown };

/** The input of a program and its expected output. */
export interface ProgramTest {
  readonly input: string;
  readonly output: string;
}

export type RowTests =
  | { readonly kind: "code"; readonly tests: readonly CodeTest[] }
  | { readonly kind: "programs"; readonly tests: readonly ProgramTest[] };

/** A text, for which some data sets have a list of its lines. */
const text = z.union([z.string(), z.array(z.string()).transform((lines) => lines.join("\n"))]);
const codeForm = z.object({
  tests: z.union([z.string(), z.array(z.string()).min(1)]),
  entry_point: z.string().min(1).nullish(),
  in_place: z.boolean().optional(),
});
const humanEvalForm = z
  .object({ test: z.string(), entry_point: z.string().min(1) })
  .transform(({ test, entry_point }) => ({ tests: test, entry_point, in_place: undefined }));
const pairsForm = z.union([
  z.object({
    inputs: z.array(z.unknown()).min(1),
    outputs: z.array(z.unknown()),
    fn_name: z.string().nullish(),
  }),
  z
    .object({ input: z.array(z.unknown()).min(1), output: z.array(z.unknown()) })
    .transform(({ input, output }) => ({ inputs: input, outputs: output, fn_name: undefined })),
]);
const casesForm = z
  .array(
    z
      .object({ input: z.string(), output: z.string(), testtype: z.literal("stdin").optional() })
      .transform(({ input, output }) => ({ input, output })),
  )
  .min(1);

/**
 * Reads a ground truth.
 * @param isAll whether all tests must pass; those written in Python are then joined into one.
 * @throws {JudgeError} when it is JSON in none of the known forms.
 */
export function rowTestsOf(groundTruth: string, isAll: boolean): RowTests {
  const value = jsonOf(groundTruth);
  const asCode = (
    tests: readonly string[],
    more: Omit<Extract<CodeTest, { code: string }>, "code"> = {},
  ) => ({
    kind: "code" as const,
    tests: (isAll ? [tests.join("\n")] : tests).map((code) => ({ code, ...more })),
  });
  const list = z.array(z.string()).min(1).safeParse(value);
  if (list.success) return asCode(list.data);
  const cases = casesForm.safeParse(value);
  if (cases.success) return { kind: "programs", tests: cases.data };
  if (typeof value !== "object" || value === null) return asCode([groundTruth]);
  const code = z.union([codeForm, humanEvalForm]).safeParse(value);
  if (code.success) {
    const { tests, entry_point, in_place } = code.data;
    return asCode(typeof tests === "string" ? [tests] : tests, {
      ...(entry_point == null ? {} : { entry_point }),
      ...(in_place === undefined ? {} : { in_place }),
    });
  }
  const pairs = pairsForm.safeParse(value);
  if (pairs.success && pairs.data.inputs.length === pairs.data.outputs.length) return pairsOf(pairs.data);
  throw new JudgeError(
    "python",
    `the ground truth is JSON without tests in a known form: ${groundTruth.slice(0, 80)}; give a list of Python texts, {"tests": …}, or {"inputs": […], "outputs": […]} of one length`,
  );
}

type Pairs = z.output<typeof pairsForm>;

function pairsOf({ inputs, outputs, fn_name: name }: Pairs): RowTests {
  if (name == null) {
    return {
      kind: "programs",
      tests: inputs.map((input, i) => ({ input: textOr(input, i), output: textOr(outputs[i], i) })),
    };
  }
  return {
    kind: "code",
    tests: inputs.map((input, i) => ({
      name,
      args: argumentsOf(input, i),
      expected: expectedOf(input, outputs[i]),
    })),
  };
}

function textOr(value: unknown, index: number): string {
  const read = text.safeParse(value);
  if (read.success) return read.data;
  throw new JudgeError(
    "python",
    `input or output ${index + 1} of the ground truth is not a text; give texts, or add fn_name if they are arguments and values`,
  );
}

/** Reads arguments from a list, or from a text with one argument on each line, as LiveCodeBench has them. */
function argumentsOf(input: unknown, index: number): readonly unknown[] {
  if (Array.isArray(input)) return input;
  if (typeof input === "string") {
    const lines = input.split("\n").filter((line) => line.trim() !== "");
    const values = lines.map(jsonOf);
    if (!values.includes(undefined)) return values;
  }
  throw new JudgeError(
    "python",
    `input ${index + 1} of the ground truth must be a list of arguments, or a text with one JSON value on each line`,
  );
}

/** Reads the expected value; it is a text if the arguments are one. */
function expectedOf(input: unknown, output: unknown): unknown {
  if (typeof input !== "string" || typeof output !== "string") return output;
  return jsonOf(output) ?? output;
}

/** @returns undefined where it is not JSON. */
function jsonOf(written: string): unknown {
  try {
    return parseJson(written);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
