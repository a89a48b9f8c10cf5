import { test } from "node:test";
import { catches } from "./catches.ts";
import { QUICK_MUTATION } from "./mutations.ts";

test(`the kill matrix catches the fault: ${QUICK_MUTATION}`, () => catches(QUICK_MUTATION));
