/** The Python that runs in the interpreters of a grading, beside the answer's and the tests' own. */

import { readFileSync } from "node:fs";
import path from "node:path";

const textOf = (file: string) => readFileSync(path.join(import.meta.dirname, file), "utf8");

/** How the two sides speak, for both of them. */
const WIRE = textOf("far.py") + textOf("wire.py");

/** Serves what the tests ask of the answer. */
export const ANSWER_PROGRAM = WIRE + textOf("answer.py");
/** Runs the answer as a program, input by input. */
export const PROGRAMS_PROGRAM = textOf("programs.py");
/** Runs the tests of rows, job after job. */
export const TESTS_PROGRAM = WIRE + textOf("tests.py") + textOf("grading.py");
