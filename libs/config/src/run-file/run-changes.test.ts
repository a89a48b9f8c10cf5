import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { KEYS_THAT_DO_NOT_MATTER, runChanges, tokenizerDigest } from "./run-changes.ts";
import { runFileSchema } from "./schema/run-file-schema.ts";

/** The paths of all keys that hold no further keys; for a list, those of its first element. */
function leafKeys(schema: z.core.$ZodType, path: readonly (string | 0)[] = []): (string | 0)[][] {
  if (schema instanceof z.ZodObject) {
    return Object.entries(schema.shape).flatMap(([key, member]) =>
      leafKeys(member as z.ZodType, [...path, key]),
    );
  }
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    return leafKeys(schema.def.innerType, path);
  }
  if (schema instanceof z.ZodNullable) return leafKeys(schema.def.innerType, path);
  if (schema instanceof z.ZodPipe) return leafKeys(schema.def.in, path);
  if (schema instanceof z.ZodLazy) return [[...path]];
  if (schema instanceof z.ZodUnion) {
    const nested = schema.options.flatMap((option) => leafKeys(option as z.ZodType, path));
    return nested.some((key) => key.length > path.length)
      ? nested.filter((key) => key.length > path.length)
      : [[...path]];
  }
  if (schema instanceof z.ZodArray) return leafKeys(schema.element as z.ZodType, [...path, 0]);
  return [[...path]];
}

const nameOf = (path: readonly (string | 0)[]) =>
  path
    .map((part) => (part === 0 ? "[0]" : `.${part}`))
    .join("")
    .slice(1);

/** An object with a value at a path; lists on the path have one element. */
function holding(path: readonly (string | 0)[], value: unknown): unknown {
  const [head, ...rest] = path;
  if (head === undefined) return value;
  return head === 0 ? [holding(rest, value)] : { [head]: holding(rest, value) };
}

const paths = new Map(leafKeys(runFileSchema).map((path) => [nameOf(path), path]));

describe("runChanges()", () => {
  test("the tests below cover all keys of the schema", () => {
    for (const key of [
      "model.lora.rank",
      "trainer.steps",
      "judge[0].weight",
      "rollout.sampling.topP",
      "seed",
    ]) {
      assert.ok(paths.has(key), key);
    }
    assert.ok(paths.size > 100, String(paths.size));
  });

  for (const [key, path] of paths) {
    test(`reports a changed ${key} with both values`, () => {
      const [one, other] = [holding(path, "one"), holding(path, "other")];
      const matters = !KEYS_THAT_DO_NOT_MATTER.has(key);
      assert.deepEqual(runChanges(one, other), [{ key, before: "one", after: "other", matters }]);
      assert.deepEqual(runChanges(one, holding(path, "one")), []);
      const [added] = runChanges({}, one);
      assert.ok(added !== undefined && key.startsWith(added.key) && added.before === undefined);
    });
  }

  test("every key that does not matter is a key of the run file", () => {
    for (const key of KEYS_THAT_DO_NOT_MATTER) assert.ok(paths.has(key), key);
  });

  test("an unknown key matters", () => {
    assert.equal(runChanges({ trainer: { later: 1 } }, { trainer: { later: 2 } })[0]?.matters, true);
  });
});

test("tokenizerDigest() depends on the contents of the files, not on their order", () => {
  const digest = tokenizerDigest({ "tokenizer.json": "{}", "chat_template.jinja": "a" });
  assert.equal(tokenizerDigest({ "chat_template.jinja": "a", "tokenizer.json": "{}" }), digest);
  assert.notEqual(tokenizerDigest({ "chat_template.jinja": "b", "tokenizer.json": "{}" }), digest);
  assert.notEqual(tokenizerDigest({ "tokenizer.json": "{}" }), digest);
});
