/** Runs the suite of all engines with test servers that have the HTTP APIs of vLLM and SGLang. */

import { after } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { type EngineSuiteOptions, testInferenceEngine } from "../domain/inference-engine.suite.ts";
import type { EngineServer } from "./engine-server.ts";
import { ServerEngine } from "./server-engine.ts";
import { SglangServer } from "./sglang/sglang-server.ts";
import type { FakeEngineServer } from "./testing/fake-engine-server.ts";
import { FakeSglangServer } from "./testing/fake-sglang-server.ts";
import { FakeVllmServer } from "./testing/fake-vllm-server.ts";
import { TEST_SPEC, writePolicy } from "./testing/policies.ts";
import { VllmServer } from "./vllm/vllm-server.ts";

const folder = await temporaryFolder("server-engines");
after(() => folder[Symbol.asyncDispose]());
const start = await writePolicy(folder.path, "start", 0);
const first = await writePolicy(folder.path, "m", 1);
const second = await writePolicy(folder.path, "m", 2);
const other = await writePolicy(folder.path, "n", 9);
const shared = {
  folder: start.folder,
  vocabularySize: TEST_SPEC.vocabSize,
  maxContextTokens: TEST_SPEC.maxPositions,
};

function testServer(
  name: string,
  make: () => { readonly test: FakeEngineServer; readonly connect: (url: string) => EngineServer },
  canTruncate: EngineSuiteOptions["canTruncate"],
): void {
  const setUp = async () => {
    const { test, connect } = make();
    await test.start();
    const engine = new ServerEngine({ server: connect(test.url), lookEveryMs: 50 });
    const dispose = async () => {
      await engine.close();
      await test.kill();
    };
    const { vocabularySize, maxContextTokens } = shared;
    return { engine, first, second, other, vocabularySize, maxContextTokens, dispose };
  };
  const options = canTruncate === undefined ? {} : { canTruncate };
  testInferenceEngine(name, setUp, { isExact: false, isSingleModel: true, ...options });
}

const vllm = (url: string) => new VllmServer({ url });
const sglang = (url: string) => new SglangServer({ url });

testServer(
  "vLLM",
  () => ({ test: new FakeVllmServer({ ...shared, scoring: "processed", chunkTokens: 3 }), connect: vllm }),
  true,
);
testServer(
  "an older vLLM, with the model's own logprobs",
  () => ({ test: new FakeVllmServer({ ...shared, scoring: "raw", isNew: false }), connect: vllm }),
  false,
);
testServer(
  "SGLang",
  () => ({ test: new FakeSglangServer({ ...shared, scoring: "tempered" }), connect: sglang }),
  false,
);
testServer(
  "an older SGLang, with chunks of what is new",
  () => ({
    test: new FakeSglangServer({ ...shared, scoring: "tempered", isNew: false, isIncremental: true }),
    connect: sglang,
  }),
  false,
);
