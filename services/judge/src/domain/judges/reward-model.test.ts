import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { Add, Cast, Concat, Graph, Mul, ReduceSum, serialize } from "@hone/tensor";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { ChatRenderer } from "@hone/tokenizer";
import { chatmlTokenizer, chatmlTokenizerFiles } from "@hone/tokenizer/testing";
import { answered, judgementOf, judgeParts } from "../testing.ts";

describe("the judge reward_model", () => {
  let folder: TemporaryFolder;
  before(async () => {
    folder = await temporaryFolder("reward-model");
    await mkdir(path.join(folder.path, "model"));
    for (const [name, text] of Object.entries(chatmlTokenizerFiles())) {
      await writeFile(path.join(folder.path, "model", name), text);
    }
    await writeFile(path.join(folder.path, "model", "model.onnx"), classifier());
  });
  after(() => folder[Symbol.asyncDispose]());

  /** A model with three outputs: the sum of the ids, a hundredth of it, and the weighted sums of the other inputs. */
  function classifier(): Uint8Array {
    const g = new Graph("classifier");
    const ids = Cast(g.input("input_ids", "int64", [1, "length"]), "float32");
    const sumOf = (values: typeof ids) => ReduceSum(values, { axes: [1], keepDims: true });
    const sum = sumOf(ids);
    const [mask, types, positions] = ["attention_mask", "token_type_ids", "position_ids"].map((name) =>
      sumOf(Cast(g.input(name, "int64", [1, "length"]), "float32")),
    );
    const weight = g.initializer("weight", "float32", [1], Float32Array.of(1_000));
    const others = Add(Add(Mul(mask!, weight), Mul(types!, weight)), positions!);
    const hundredth = Mul(sum, g.initializer("scale", "float32", [1], Float32Array.of(0.01)));
    g.output("logits", Concat([sum, hundredth, others], 1));
    return serialize(g);
  }

  const judge = (answer: string, more: object = {}) => {
    const episode = answered(answer, "4");
    const row = { ...episode.row!, prompt: [{ role: "user", content: "2+2?" }] };
    const config = { kind: "reward_model", path: "model", ...more };
    return judgementOf(config, { ...episode, row }, judgeParts({ filesDir: folder.path }));
  };
  const idsOf = (answer: string) =>
    new ChatRenderer(chatmlTokenizer()).renderEnded([
      { role: "user", content: "2+2?" },
      { role: "assistant", content: answer },
    ]).tokenIds;
  const sum = (ids: readonly number[]) => ids.reduce((total, id) => total + id, 0);

  test("reads the whole conversation by the model's own template", async () => {
    assert.equal((await judge("so 4")).value, sum(idsOf("so 4")));
    assert.notEqual(sum(idsOf("so 4")), sum(idsOf("so 5")));
  });

  test("takes the output that is asked for, squashed where that is asked for", async () => {
    const output = sum(idsOf("4")) * 0.01;
    const { value } = await judge("4", { label: 1 });
    assert.ok(Math.abs(value - output) < 1e-3 * output, `${value} and ${output}`);
    const squashed = await judge("4", { label: 1, squash: "sigmoid" });
    assert.ok(Math.abs(squashed.value - 1 / (1 + Math.exp(-output))) < 1e-6);
    await assert.rejects(judge("4", { label: 3 }), /has 3 outputs and no output 3/);
  });

  test("gives a classifier the mask, types and positions that it has inputs for", async () => {
    const length = idsOf("so 4").length;
    assert.equal((await judge("so 4", { label: 2 })).value, 1_000 * length + (length * (length - 1)) / 2);
  });

  test("uses the end of a conversation that is too long", async () => {
    assert.equal((await judge("so 4", { maxTokens: 3 })).value, sum(idsOf("so 4").slice(-3)));
  });

  test("refuses a model that is not a classifier when the judge is made", async () => {
    await assert.rejects(judge("4", { path: "absent" }), /judge\.path/);
    await writeFile(path.join(folder.path, "model", "model.onnx"), "no graph");
    await assert.rejects(judge("4"), /is not an ONNX classifier/);
  });
});
