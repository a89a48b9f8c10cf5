import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { CodeGate } from "@hone/config";
import { InvalidInputError } from "@hone/core";
import {
  algorithmSchema,
  type CurriculumConfig,
  UserAdvantageError,
  UserCurriculumError,
  UserLossError,
} from "@hone/rl";
import { loadUserModules, userModuleProblems } from "./user-modules.ts";

const EASY = { source: "environment", environment: "e", config: {}, seeds: { from: 0, to: 9 } } as const;
const runOf = (algorithm: Record<string, unknown>, curriculum?: CurriculumConfig) => ({
  algorithm: algorithmSchema.parse(algorithm),
  dataset: { train: EASY, ...(curriculum !== undefined && { curriculum }) },
});

describe("a run's own algorithms", () => {
  let filesFolder: string;
  let gate: CodeGate;
  before(async () => {
    filesFolder = await mkdtemp(path.join(tmpdir(), "hone-modules-"));
    gate = new CodeGate({ filesFolder, areModulesAllowed: true });
    const write = (name: string, text: string) => writeFile(path.join(filesFolder, name), `${text}\n`);
    await write(
      "own.ts",
      `export function computeAdvantages(step: readonly unknown[]) { return { groups: step.map(() => []) }; }
       export const takesTask = ({ successes }) => successes.length === 0;
       export const tokenLoss = ({ logprob, advantage }, { scale }) => logprob.times(advantage).times(-scale);`,
    );
    await write("other.ts", "export const other = 1;");
    await write("broken.ts", "throw new Error('no such table');");
    await write("number.ts", "export const tokenLoss = () => 7;");
    await write("constant.ts", "export const tokenLoss = ({ advantage }) => advantage.times(2);");
    await write("foreign.ts", "export const tokenLoss = ({ logprob }) => logprob.plus(Number.NaN);");
  });
  after(() => rm(filesFolder, { recursive: true }));

  const own = (file: string) => runOf({ advantage: { kind: "module", path: file } });
  const ownLoss = (file: string, options = {}) => runOf({ loss: { kind: "module", path: file, options } });

  test("are loaded from the project folder", async () => {
    assert.deepEqual(await userModuleProblems(own("./own.ts"), gate), []);
    const { advantage, loss } = await loadUserModules(own("./own.ts"), gate);
    assert.deepEqual(advantage?.([], {}), { groups: [] });
    assert.equal(loss, undefined);
    const made = await loadUserModules(ownLoss("./own.ts", { scale: 2 }), gate);
    assert.deepEqual(made, {
      advantage: undefined,
      loss: ["multiply", ["multiply", "logprob", "advantage"], -2],
      curricula: new Map(),
    });
  });

  test("decide which tasks are taken, where a curriculum names one", async () => {
    const curriculum = { kind: "module", path: "./own.ts", options: {}, window: 3 } as const;
    const { curricula } = await loadUserModules(runOf({}, curriculum), gate);
    const task = { id: "e:1", position: 0, draw: 0 };
    assert.equal(curricula?.get("")?.({ ...task, successes: [] }, {}), true);
    assert.equal(curricula?.get("")?.({ ...task, successes: [1] }, {}), false);
    const other = { ...curriculum, path: "./other.ts" };
    await assert.rejects(loadUserModules(runOf({}, other), gate), UserCurriculumError);
    const [problem] = await userModuleProblems(runOf({}, curriculum), new CodeGate({ filesFolder }));
    assert.equal(problem?.key, "dataset.curriculum.path");
  });

  test("are absent where the run names Hone's", async () => {
    assert.deepEqual(await userModuleProblems(runOf({}), gate), []);
    assert.deepEqual(await loadUserModules(runOf({}), gate), {
      advantage: undefined,
      loss: undefined,
      curricula: new Map(),
    });
  });

  test("are refused at admission where modules are not allowed, without running them", async () => {
    const closed = new CodeGate({ filesFolder });
    for (const [run, key] of [
      [own("./own.ts"), "algorithm.advantage.path"],
      [ownLoss("./own.ts"), "algorithm.loss.path"],
    ] as const) {
      const [problem] = await userModuleProblems(run, closed);
      assert.equal(problem?.key, key);
      assert.match(problem?.message ?? "", /HONE_ALLOW_MODULES=yes/);
      await assert.rejects(loadUserModules(run, closed), InvalidInputError);
    }
  });

  test("are refused at admission where the file does not exist or lies outside of the project folder", async () => {
    for (const file of ["./missing.ts", "../own.ts", "/etc/passwd"]) {
      for (const run of [own(file), ownLoss(file)]) {
        assert.equal((await userModuleProblems(run, gate)).length, 1, file);
      }
    }
  });

  test("are refused where the file cannot be imported, exports no such function, or makes no loss", async () => {
    for (const [run, kind, message] of [
      [own("./broken.ts"), UserAdvantageError, /no such table/],
      [own("./other.ts"), UserAdvantageError, /must export a function computeAdvantages/],
      [ownLoss("./broken.ts"), UserLossError, /no such table/],
      [ownLoss("./other.ts"), UserLossError, /must export a function tokenLoss/],
      [
        ownLoss("./number.ts"),
        UserLossError,
        /must return what the methods of the numbers that it gets make/,
      ],
      [ownLoss("./constant.ts"), UserLossError, /a loss without logprob/],
      [ownLoss("./foreign.ts"), UserLossError, /the constant NaN is not finite/],
    ] as const) {
      await assert.rejects(
        loadUserModules(run, gate),
        (error: unknown) => error instanceof kind && message.test(error.message),
        String(message),
      );
    }
  });
});
