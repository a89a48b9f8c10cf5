import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { CodeGate } from "@hone/config";
import { InvalidInputError } from "@hone/core";
import { algorithmSchema, UserAdvantageError } from "@hone/rl";
import { loadUserAdvantage, userAdvantageProblems } from "./user-advantage.ts";

const runOf = (advantage: Record<string, unknown>) => ({ algorithm: algorithmSchema.parse({ advantage }) });

describe("a run's own advantage algorithm", () => {
  let filesFolder: string;
  let gate: CodeGate;
  before(async () => {
    filesFolder = await mkdtemp(path.join(tmpdir(), "hone-advantage-"));
    gate = new CodeGate({ filesFolder, areModulesAllowed: true });
    await writeFile(
      path.join(filesFolder, "own.ts"),
      "export function computeAdvantages(step: readonly unknown[]) { return { groups: step.map(() => []) }; }\n",
    );
    await writeFile(path.join(filesFolder, "other.ts"), "export const other = 1;\n");
    await writeFile(path.join(filesFolder, "broken.ts"), "throw new Error('no such table');\n");
  });
  after(() => rm(filesFolder, { recursive: true }));

  const own = (file: string) => runOf({ kind: "module", path: file });

  test("is loaded from the project folder", async () => {
    assert.deepEqual(await userAdvantageProblems(own("./own.ts"), gate), []);
    const compute = await loadUserAdvantage(own("./own.ts"), gate);
    assert.deepEqual(compute?.([], {}), { groups: [] });
  });

  test("is absent where the run names an algorithm of Hone's", async () => {
    assert.deepEqual(await userAdvantageProblems(runOf({ kind: "grpo" }), gate), []);
    assert.equal(await loadUserAdvantage(runOf({ kind: "grpo" }), gate), undefined);
  });

  test("is refused at admission where modules are not allowed, without running it", async () => {
    const [problem] = await userAdvantageProblems(own("./own.ts"), new CodeGate({ filesFolder }));
    assert.equal(problem?.key, "algorithm.advantage.path");
    assert.match(problem?.message ?? "", /HONE_ALLOW_MODULES=yes/);
    await assert.rejects(
      loadUserAdvantage(own("./own.ts"), new CodeGate({ filesFolder })),
      InvalidInputError,
    );
  });

  test("is refused at admission where the file does not exist or lies outside of the project folder", async () => {
    for (const file of ["./missing.ts", "../own.ts", "/etc/passwd"]) {
      assert.equal((await userAdvantageProblems(own(file), gate)).length, 1, file);
    }
  });

  test("is refused where the file cannot be imported or exports no such function", async () => {
    await assert.rejects(
      loadUserAdvantage(own("./broken.ts"), gate),
      (error: unknown) => error instanceof UserAdvantageError && /no such table/.test(error.message),
    );
    await assert.rejects(
      loadUserAdvantage(own("./other.ts"), gate),
      (error: unknown) =>
        error instanceof UserAdvantageError && /must export a function computeAdvantages/.test(error.message),
    );
  });
});
