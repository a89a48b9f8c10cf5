import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { cp, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { absurdJson, damaged, fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { ChatRenderer } from "./chat-renderer.ts";
import { TokenizerLoadError } from "./errors.ts";
import { loadTokenizer, makeTokenizer } from "./load-tokenizer.ts";

const example = path.join(import.meta.dirname, "../../../examples/01-frozen-lake");
let folder: string;

before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), "hone-tokenizer-"));
});
after(() => rm(folder, { recursive: true }));

describe("loadTokenizer", () => {
  test("refuses a file that would fill memory, before it is read", async () => {
    const huge = path.join(folder, "huge");
    await cp(example, huge, { recursive: true });
    await truncate(path.join(huge, "tokenizer.json"), 20 * 1024 ** 3);
    await assert.rejects(loadTokenizer(huge), (error) => {
      assert.ok(error instanceof TokenizerLoadError);
      assert.match(error.message, /tokenizer\.json must have at most 134217728 bytes/);
      return true;
    });
    await rm(huge, { recursive: true });
  });

  test("with the first example's tokenizer, an answer has three tokens and the end of the turn", async () => {
    const tokenizer = await loadTokenizer(example);
    assert.equal(tokenizer.vocabSize, 32);
    const ids = tokenizer.encode("<answer>Right</answer><|end|>");
    assert.equal(ids.length, 4);
    assert.deepEqual(tokenizer.stopTokenIds, [ids[3]]);
    assert.equal(tokenizer.decode(ids, { skipSpecialTokens: true }), "<answer>Right</answer>");
  });

  test("the first example's tokenizer restores the text of a lake and accepts every other character", async () => {
    const tokenizer = await loadTokenizer(example);
    const lake = "P_OG\n____\nX√__\n_O_O\n0-3, 12";
    assert.equal(tokenizer.decode(tokenizer.encode(lake)), lake);
    assert.equal(tokenizer.encode(lake).length, [...lake].length);
    assert.equal(tokenizer.encode("é😀").length, 2);
  });

  test("the first example's template adds two tokens to a turn", async () => {
    const tokenizer = await loadTokenizer(example);
    const { tokenIds } = new ChatRenderer(tokenizer).render([{ role: "user", content: "P_OG" }]);
    assert.equal(tokenIds.length, 4 + 2);
  });

  test("returns the same ids as Python's transformers for the first example's files", async () => {
    // AutoTokenizer.from_pretrained("examples/01-frozen-lake").apply_chat_template(...), transformers 5.23, tokenizers 0.23.
    const reference = [
      3, 12, 13, 14, 15, 18, 13, 13, 13, 13, 18, 16, 17, 13, 13, 18, 13, 13, 13, 13, 18, 20, 20, 31, 20, 23,
      19, 1, 1, 1, 1, 1, 1, 4,
    ];
    const tokenizer = await loadTokenizer(example);
    const { tokenIds } = new ChatRenderer(tokenizer).render([
      { role: "user", content: "P_OG\n____\nX√__\n____\n00,03 hello😀" },
    ]);
    assert.deepEqual(tokenIds, reference);
  });

  test("the digest changes with the files", async () => {
    await cp(example, folder, { recursive: true });
    const original = await loadTokenizer(example);
    const copied = await loadTokenizer(folder);
    assert.equal(copied.digest, original.digest);
    await writeFile(path.join(folder, "chat_template.jinja"), "{{ messages[0].content }}");
    assert.notEqual((await loadTokenizer(folder)).digest, original.digest);
  });

  test("a folder without tokenizer.json is refused with its name", async () => {
    await assert.rejects(loadTokenizer(path.join(folder, "nowhere")), (error) => {
      assert.ok(error instanceof TokenizerLoadError);
      assert.match(error.message, /tokenizer of ".*nowhere": its folder must hold tokenizer\.json/);
      return true;
    });
  });

  test("a folder name that cannot exist is refused with a TokenizerLoadError", async () => {
    for (const name of ["x".repeat(10_000), "a\u0000b"]) {
      await assert.rejects(loadTokenizer(path.join(folder, name)), TokenizerLoadError);
    }
  });

  test("a file that is not JSON is refused with its name", async () => {
    await writeFile(path.join(folder, "tokenizer_config.json"), "{");
    await assert.rejects(loadTokenizer(folder), /tokenizer_config\.json must be JSON/);
  });
});

describe("makeTokenizer() with invalid files", () => {
  const files = Object.fromEntries(
    ["tokenizer.json", "tokenizer_config.json"].map((name) => [
      name,
      readFileSync(path.join(example, name), "utf8"),
    ]),
  );
  const tokenizer = () => JSON.parse(files["tokenizer.json"]!) as Record<string, unknown>;
  const wordLevel = (vocab: Record<string, unknown>) =>
    JSON.stringify({ ...tokenizer(), added_tokens: [], model: { type: "WordLevel", vocab, unk_token: "a" } });

  test("refuses ids that are too large or not whole numbers", () => {
    for (const id of [2 ** 20, 2 ** 31, 1e300, 0.5, "7"]) {
      const texts = { ...files, "tokenizer.json": wordLevel({ a: 0, b: id }) };
      assert.throws(() => makeTokenizer(texts, "a test"), TokenizerLoadError, String(id));
    }
  });

  /** The real files with one file damaged, or with one unexpected value. */
  const wrong = fc.oneof(
    ...Object.entries(files).flatMap(([name, text]) => [
      damaged(Buffer.from(text)).map((bytes) => ({ ...files, [name]: Buffer.from(bytes).toString("utf8") })),
      fc
        .tuple(fc.constantFrom(...Object.keys(JSON.parse(text))), absurdJson)
        .map(([key, value]) => ({ ...files, [name]: JSON.stringify({ ...JSON.parse(text), [key]: value }) })),
      absurdJson.map((value) => ({ ...files, [name]: JSON.stringify(value) })),
    ]),
    fc.tuple(fc.constantFrom("type", "vocab", "merges", "unk_token"), absurdJson).map(([key, value]) => {
      const real = tokenizer();
      const model = { ...(real.model as object), [key]: value };
      return { ...files, "tokenizer.json": JSON.stringify({ ...real, model }) };
    }),
  );

  test("refuses them or returns ids below the size of the vocabulary", () => {
    fc.assert(
      fc.property(wrong, (texts) => {
        try {
          const made = makeTokenizer(texts, "a test");
          for (const id of made.encode("P_OG\n<answer>Right</answer>")) {
            assert.ok(id < made.vocabSize && id >= 0, `id ${id}`);
          }
        } catch (error) {
          assert.ok(error instanceof TokenizerLoadError, String(error));
        }
      }),
      fuzz(500),
    );
  });
});
