import assert from "node:assert/strict";
import { cp, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { loadTokenizer } from "@hone/tokenizer";
import { chatmlTokenizerFiles } from "@hone/tokenizer/testing";
import { UnusableJobError } from "./errors.ts";
import { MAX_TOKENIZERS, Tokenizers } from "./tokenizers.ts";

describe("Tokenizers", () => {
  let state: Awaited<ReturnType<typeof temporaryFolder>>;
  before(async () => {
    state = await temporaryFolder("tokenizers");
  });
  after(() => state[Symbol.asyncDispose]());

  /** A run's copy of a tokenizer; another `template` makes another tokenizer. */
  async function runWith(name: string, template: string) {
    const folder = path.join(state.path, name);
    await mkdir(folder, { recursive: true });
    for (const [file, text] of Object.entries(chatmlTokenizerFiles(template))) {
      await writeFile(path.join(folder, file), text);
    }
    return { tokenizerPath: name, tokenizerDigest: (await loadTokenizer(folder)).digest };
  }

  test("runs whose files are the same share one tokenizer", async () => {
    const tokenizers = new Tokenizers(state.path);
    const first = await runWith("first", "same");
    await cp(path.join(state.path, "first"), path.join(state.path, "second"), { recursive: true });
    const renderer = await tokenizers.rendererOf(first);
    assert.equal(await tokenizers.rendererOf({ ...first, tokenizerPath: "second" }), renderer);
    assert.notEqual(await tokenizers.rendererOf(await runWith("third", "other")), renderer);
  });

  test("the least recently used tokenizer is dropped", async () => {
    const tokenizers = new Tokenizers(state.path);
    const runs = [];
    for (let i = 0; i <= MAX_TOKENIZERS; i++) runs.push(await runWith(`run-${i}`, `template ${i}`));
    const kept = await tokenizers.rendererOf(runs[0]!);
    const dropped = await tokenizers.rendererOf(runs[1]!);
    for (const run of runs.slice(2, MAX_TOKENIZERS)) await tokenizers.rendererOf(run);
    await tokenizers.rendererOf(runs[0]!);
    await tokenizers.rendererOf(runs[MAX_TOKENIZERS]!);
    assert.equal(await tokenizers.rendererOf(runs[0]!), kept);
    assert.notEqual(await tokenizers.rendererOf(runs[1]!), dropped);
  });

  test("loading is tried again after a failure", async () => {
    const tokenizers = new Tokenizers(state.path);
    const run = await runWith("late", "late");
    const away = { ...run, tokenizerPath: "nowhere" };
    await assert.rejects(tokenizers.rendererOf(away));
    await tokenizers.rendererOf(run);
  });

  test("refuses a folder outside the state folder, and files that differ from the run's", async () => {
    const tokenizers = new Tokenizers(state.path);
    const run = await runWith("mine", "mine");
    for (const bad of [
      { ...run, tokenizerPath: "../mine" },
      { ...run, tokenizerDigest: "0".repeat(64) },
    ]) {
      await assert.rejects(tokenizers.rendererOf(bad), UnusableJobError);
    }
  });
});
