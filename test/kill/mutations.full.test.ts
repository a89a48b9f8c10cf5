import { test } from "node:test";
import { catches } from "./catches.ts";
import { MUTATION_NAMES, QUICK_MUTATION } from "./mutations.ts";

/* The kill matrix is worth something only if it sees faults: each must make it complain, and about the right thing. */

for (const name of MUTATION_NAMES.filter((each) => each !== QUICK_MUTATION)) {
  test(`the kill matrix catches the fault: ${name}`, () => catches(name));
}
