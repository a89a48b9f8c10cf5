/** Tests that the chart accepts the examples in its README. scripts/chart-options.test.ts tests the tables. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { CHART, helm } from "./helm.ts";
import { program, skip } from "./profiles.ts";

const readme = readFileSync(path.join(CHART, "README.md"), "utf8");

describe("the README of the chart", () => {
  test("gives values that the chart accepts", { skip }, async () => {
    const examples = [...readme.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = ""]) => text);
    assert.ok(examples.length >= 1);
    await using folder = await temporaryFolder("readme");
    for (const [index, text] of examples.entries()) {
      const file = path.join(folder.path, `${index}.yaml`);
      await writeFile(file, text);
      assert.match(await helm(program, ["template", "hone", CHART, "--values", file]), /Qwen\/Qwen3-8B/);
    }
  });
});
