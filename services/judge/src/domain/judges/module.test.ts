import assert from "node:assert/strict";
import { access, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { CodeGate } from "@hone/config";
import { temporaryFolder } from "@hone/testing";
import { answered, judgementOf, judgeParts } from "../testing.ts";

describe("the judge module", () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  before(async () => {
    folder = await temporaryFolder("judge-module");
  });
  after(() => folder[Symbol.asyncDispose]());

  const gate = (areModulesAllowed = true) => new CodeGate({ filesFolder: folder.path, areModulesAllowed });
  const judge = async (source: string, more: object = {}) => {
    const name = `score-${Math.random().toString(36).slice(2)}.ts`;
    await writeFile(path.join(folder.path, name), source);
    return judgementOf({ kind: "module", path: name, ...more }, answered("so 4", "4"), {
      ...judgeParts({ filesDir: folder.path, gate: gate() }),
    });
  };

  test("gets the row, the answer and the agent's metadata, and may return a number", async () => {
    const source = `
      interface Input { dataSource: string; solution: string; groundTruth: unknown; extraInfo: { index: number }; metadata: { answer: string } }
      export function computeScore({ dataSource, solution, groundTruth, extraInfo, metadata }: Input): number {
        const isKnown = dataSource === "sums" && extraInfo.index === 3 && metadata.answer === "four";
        return isKnown && solution.endsWith(String(groundTruth)) ? 0.5 : 0;
      }`;
    assert.equal((await judge(source)).value, 0.5);
  });

  test("may return a promise, with metrics and rewards of turns in addition to the score", async () => {
    const source = `export async function computeScore() {
      return { score: true, length: 4, pred: "4", turns: [[0, 0.25]] };
    }`;
    assert.deepEqual(await judge(source), {
      value: 1,
      metrics: { length: 4 },
      turnRewards: [{ turn: 0, value: 0.25 }],
    });
  });

  for (const [what, source, reason] of [
    ["throws", "export function computeScore() { throw new Error('no luck'); }", /no luck/],
    ["returns something else", "export const computeScore = () => 'good';", /a number or \{ score/],
    [
      "never returns",
      "export const computeScore = () => new Promise(() => {});",
      /Waited 50 ms for computeScore/,
    ],
    ["does not exist", "export const compute = 1;", /export a function computeScore/],
    ["is in a module with an error", "export const computeScore = ;", /module ".*" cannot be loaded/],
  ] as const) {
    test(`fails if the function ${what}`, () => assert.rejects(judge(source, { deadlineMs: 50 }), reason));
  }

  test("does not load a file outside of the project folder", () =>
    assert.rejects(
      judgementOf({ kind: "module", path: "../x.ts" }, answered("4"), judgeParts({ gate: gate() })),
      /a path below/,
    ));

  test("does not import the file if the operator does not allow modules", async () => {
    const witness = path.join(folder.path, "imported");
    const source = `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(witness)}, "");
      export const computeScore = () => 1;`;
    await writeFile(path.join(folder.path, "effects.ts"), source);
    const asked = { kind: "module", path: "effects.ts" };
    await assert.rejects(
      judgementOf(asked, answered("4"), judgeParts({ gate: gate(false) })),
      /HONE_ALLOW_MODULES=yes/,
    );
    await assert.rejects(access(witness));
    assert.equal((await judgementOf(asked, answered("4"), judgeParts({ gate: gate() }))).value, 1);
    await access(witness);
  });
});
