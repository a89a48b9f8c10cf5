/** Every value of the chart taken away with null: the chart does without it, or says in a sentence that it cannot. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { parse } from "yaml";
import { CHART, render } from "./helm.ts";
import { program, skip } from "./profiles.ts";

/** What the schema and _validate.tpl say; anything else is a template that ended in its middle. */
const REFUSAL = /missing property '\w+'|got null, want|Cannot /;

/** Paths of all values, groups included. */
function pathsOf(values: object, above = ""): string[] {
  return Object.entries(values).flatMap(([key, value]) => {
    const own = `${above}${key}`;
    const isGroup = typeof value === "object" && value !== null && !Array.isArray(value);
    return [own, ...(isGroup ? pathsOf(value, `${own}.`) : [])];
  });
}

describe("a value that is null", { skip }, () => {
  const values = parse(readFileSync(path.join(CHART, "values.yaml"), "utf8")) as object;
  for (const [component, below] of Object.entries(values)) {
    test(`of ${component} is done without, or refused with its name`, async () => {
      for (const each of pathsOf({ [component]: below })) {
        // What a key of a map means to the map's user is not the chart's to know.
        if (each.includes("/") || /[a-z]\.(kubernetes|nvidia)/.test(each)) continue;
        await render(program, { set: [`${each}=null`] }).catch((error: Error) => {
          assert.match(error.message, REFUSAL, each);
        });
      }
    });
  }
});
