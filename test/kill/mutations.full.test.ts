import { test } from "node:test";
import { catches } from "./catches.ts";
import { MUTATION_NAMES, QUICK_MUTATION } from "./mutations.ts";

/* The kill matrix must detect each of these faults, and complain about the promise that it breaks. */

for (const name of MUTATION_NAMES.filter((each) => each !== QUICK_MUTATION)) {
  test(`the kill matrix catches the fault: ${name}`, () => catches(name));
}
