/** The OpenAI API and invalid bodies. */
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { saveCheckpoint } from "@hone/checkpoint";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { type RunningService, startService } from "@hone/service-kit";
import { createLogger } from "@hone/telemetry";
import { eventually, startNats, type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { badJson, withInputs } from "@hone/testing/fuzz";
import { chatmlTokenizer, chatmlTokenizerFiles } from "@hone/tokenizer/testing";
import { readInferenceGatewayConfig } from "../config.ts";
import { inferenceGatewayService } from "../service.ts";

const MODEL = "tiny";
const ANSWER_MS = 30_000;
const common = {
  model: MODEL,
  max_tokens: 2,
  temperature: 1,
  top_p: 0.9,
  n: 1,
  seed: 3,
  stop: ["."],
  stream: false,
};
const CHAT = { ...common, messages: [{ role: "user", content: "Hello" }] };
const TEXT = { ...common, prompt: ["Hello"] };

describe("bad bodies", { timeout: 120_000 }, () => {
  let nats: Awaited<ReturnType<typeof startNats>>;
  let folder: TemporaryFolder;
  let service: RunningService;
  let log = "";
  before(async () => {
    nats = await startNats();
    folder = await temporaryFolder("bad-bodies");
    const tokenizer = chatmlTokenizer();
    const spec = resolveModelSpec({
      vocabSize: tokenizer.vocabSize,
      hiddenSize: 16,
      numLayers: 1,
      numHeads: 2,
      maxPositions: 128,
      eosTokenIds: tokenizer.stopTokenIds,
    });
    const companions = chatmlTokenizerFiles();
    await saveCheckpoint(path.join(folder.path, MODEL), {
      spec,
      weights: initialiseWeights(spec, 1),
      companions,
    });
    const config = readInferenceGatewayConfig({
      HONE_NATS_URL: nats.url,
      HONE_STATE_DIR: folder.path,
      HONE_FILES: folder.path,
      HONE_INFERENCE_CACHE_MIB: "4",
      HONE_INFERENCE_SERVE: `${MODEL}=./${MODEL}`,
    });
    const sink = {
      write(line: string) {
        log += line;
      },
    };
    service = await startService(inferenceGatewayService, {
      config,
      logger: createLogger({ service: "test", level: "error", sink }),
    });
    await service.becameReady;
    await eventually(
      "the model",
      async () => (await post("chat/completions", JSON.stringify(CHAT))).status === 200,
    );
  });
  after(async () => {
    await service?.stop();
    await nats?.stop();
    await folder?.[Symbol.asyncDispose]();
  });

  async function post(route: string, body: string): Promise<{ status: number; text: string }> {
    const response = await fetch(`${service.http.url}/v1/${route}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    return { status: response.status, text: await response.text() };
  }

  for (const [route, valid] of [
    ["chat/completions", CHAT],
    ["completions", TEXT],
  ] as const) {
    test(`POST /v1/${route} answers or says what is wrong, and never with an internal error`, async () => {
      await withInputs(badJson(valid), 150, async (bodies) => {
        let refused = 0;
        for (const body of bodies) {
          const { status, text } = await post(route, body);
          const where = `${body.slice(0, 300)} -> ${status} ${text.slice(0, 300)}`;
          assert.ok(status === 200 || (status >= 400 && status < 500), where);
          if (status === 200) continue;
          refused++;
          const { error } = JSON.parse(text) as { error: { message: string } };
          assert.ok(error.message.length > 0, where);
        }
        assert.ok(refused > bodies.length / 2);
      });
      assert.equal((await post(route, JSON.stringify(valid))).status, 200);
      assert.equal(log, "");
    });
  }
});
