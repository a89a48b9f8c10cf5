/** Sets every value of the chart to null: the chart must render without it, or refuse it with a clear message. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { parse } from "yaml";
import { CHART, render } from "./helm.ts";
import { program, skip } from "./profiles.ts";

/** Messages of the schema and of _validate.tpl; any other error comes from within a template. */
const REFUSAL = /missing property '\w+'|got null, want|execution error at \(hone\/templates\/validate\.yaml/;

/** Paths of all values, including groups. */
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
    test(`of ${component} is optional, or refused by its name`, async () => {
      for (const each of pathsOf({ [component]: below })) {
        // The meaning of keys in a map of the user's is unknown to the chart.
        if (each.includes("/") || /[a-z]\.(kubernetes|nvidia)/.test(each)) continue;
        await render(program, { set: [`${each}=null`] }).catch((error: Error) => {
          assert.match(error.message, REFUSAL, each);
        });
      }
    });
  }
});
