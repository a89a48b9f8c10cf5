import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { parseRunFile, parseYaml } from "@hone/config";
import { algorithmSchema } from "@hone/rl";

/* docs/coming-from.md: its examples are accepted, and the keys that it names are explained in the other pages. */

const DOCS = path.resolve(import.meta.dirname, "..", "docs");
const page = await readFile(path.join(DOCS, "coming-from.md"), "utf8");

describe("docs/coming-from.md", () => {
  const examples = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => text!);
  assert.ok(examples.length >= 3);
  for (const text of examples) {
    test(`an example is accepted: ${text.split("\n")[1]!.trim()}`, () => {
      if (/^name:/m.test(text)) {
        parseRunFile(text); // A whole run file.
        return;
      }
      const { algorithm, ...others } = parseYaml(text, "docs/coming-from.md") as Record<string, unknown>;
      assert.deepEqual(others, {});
      algorithmSchema.parse(algorithm);
    });
  }

  test("every key of a run file that its tables name is on the page of the run file", async () => {
    const runFile = await readFile(path.join(DOCS, "run-file.md"), "utf8");
    const rows = page
      .split("\n")
      .filter((line) => line.startsWith("| ") && !line.includes("run file | note"));
    const keys = rows.flatMap((row) =>
      [...row.split("|")[2]!.matchAll(/`(\w+(?:\.\w+)+)`/g)].map(([, key]) => key!),
    );
    assert.ok(keys.length > 40);
    const unknown = keys.filter((key) => {
      const [, ...rest] = key.split(".");
      return !runFile.includes(`\`${rest.join(".")}`) && !runFile.includes(`\`${key}`);
    });
    assert.deepEqual(unknown, []);
  });
});
