import assert from "node:assert/strict";
import { access, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { CodeGate } from "@hone/config";
import { temporaryFolder } from "@hone/testing";
import { answered, judgementOf, judgeParts } from "../testing-episodes.ts";

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

  test("gets the row, the answer and the agent's metadata, and may answer with a number", async () => {
    const source = `
      interface Input { dataSource: string; solution: string; groundTruth: unknown; extraInfo: { index: number }; metadata: { answer: string } }
      export function computeScore({ dataSource, solution, groundTruth, extraInfo, metadata }: Input): number {
        const isKnown = dataSource === "sums" && extraInfo.index === 3 && metadata.answer === "four";
        return isKnown && solution.endsWith(String(groundTruth)) ? 0.5 : 0;
      }`;
    assert.equal((await judge(source)).value, 0.5);
  });

  test("may answer later, with figures and rewards of turns beside the score", async () => {
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
    ["answers with something else", "export const computeScore = () => 'good';", /a number or \{ score/],
    ["never answers", "export const computeScore = () => new Promise(() => {});", /deadline passed/],
    ["exports no function", "export const compute = 1;", /export a function computeScore/],
    ["does not load", "export const computeScore = ;", /its module must load/],
  ] as const) {
    test(`fails where the function ${what}`, () => assert.rejects(judge(source, { deadlineMs: 50 }), reason));
  }

  test("a file outside of the project folder is not loaded", () =>
    assert.rejects(
      judgementOf({ kind: "module", path: "../x.ts" }, answered("4"), judgeParts({ gate: gate() })),
      /a path below/,
    ));

  test("a file that is there is not imported where the operator does not allow modules", async () => {
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
