/** Hone's own Python code in the interpreters of a grading. */

import { readFileSync } from "node:fs";
import path from "node:path";

const textOf = (file: string) => readFileSync(path.join(import.meta.dirname, file), "utf8");

/** The protocol between the two interpreters; both run it. */
const WIRE = textOf("far.py") + textOf("wire.py");

/** Runs the answer and serves the requests of the tests. */
export const ANSWER_PROGRAM = WIRE + textOf("answer.py");
/** Runs the answer as a program, on one input after the other. */
export const PROGRAMS_PROGRAM = textOf("programs.py");
/** Runs a row's tests for one answer after the other. */
export const TESTS_PROGRAM = WIRE + textOf("tests.py") + textOf("grading.py");
