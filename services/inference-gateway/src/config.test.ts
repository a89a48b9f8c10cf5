import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { SettingError } from "@hone/service-kit";
import { temporaryFolder } from "@hone/testing";
import { readInferenceGatewayConfig } from "./config.ts";

describe("readInferenceGatewayConfig()", () => {
  test("names a checkpoint by its setting, or else by the last part of its folder or its id on the hub", () => {
    const { checkpoints } = readInferenceGatewayConfig({
      HONE_FILES: "/project",
      HONE_INFERENCE_SERVE: "./models/small, owner/name@v2 ,best=/data/run=3,,",
    });
    assert.deepEqual(checkpoints, [
      { id: "small", place: "/project/models/small" },
      { id: "owner/name@v2", place: "owner/name@v2" },
      { id: "best", place: "/data/run=3" },
    ]);
  });

  test("serves checkpoints in float32 unless it is told otherwise", () => {
    const served = (environment: Record<string, string>) =>
      readInferenceGatewayConfig(environment).servedQuantization;
    assert.equal(served({}), "none");
    assert.equal(served({ HONE_INFERENCE_SERVE_QUANTIZATION: "int8" }), "int8");
    assert.throws(
      () => served({ HONE_INFERENCE_SERVE_QUANTIZATION: "fp8" }),
      /HONE_INFERENCE_SERVE_QUANTIZATION/,
    );
  });

  test("refuses two checkpoints with the same name", () => {
    assert.throws(
      () => readInferenceGatewayConfig({ HONE_INFERENCE_SERVE: "/a/model,/b/model" }),
      (error) => error instanceof SettingError && /two have the name model$/.test(error.message),
    );
  });

  test("reads the key of the API from the environment, or else from its file", async () => {
    await using folder = await temporaryFolder("config");
    const file = path.join(folder.path, "key");
    await writeFile(file, "secret\n");
    const read = (environment: Record<string, string>) => readInferenceGatewayConfig(environment).apiKey;
    assert.equal(read({}), undefined);
    assert.equal(read({ HONE_INFERENCE_API_KEY_FILE: file }), "secret");
    assert.equal(read({ HONE_INFERENCE_API_KEY_FILE: file, HONE_INFERENCE_API_KEY: "other" }), "other");
    assert.throws(() => read({ HONE_INFERENCE_API_KEY_FILE: `${file}-nowhere` }), SettingError);
    await writeFile(file, "\n");
    assert.throws(() => read({ HONE_INFERENCE_API_KEY_FILE: file }), SettingError);
  });

  test("reads which engine to use: the embedded one, or a server with its address and keys", async () => {
    const read = (environment: Record<string, string>) => readInferenceGatewayConfig(environment).engine;
    assert.deepEqual(read({}), { kind: "onnx" });
    const url = "http://127.0.0.1:8000";
    const vllm = { HONE_INFERENCE_ENGINE: "vllm", HONE_INFERENCE_ENGINE_URL: url };
    assert.deepEqual(read({ ...vllm, HONE_STATE_DIR: "/state", HONE_INSTANCE_ID: "gateway-0" }), {
      kind: "vllm",
      url,
      apiKey: undefined,
      adminKey: undefined,
      loadDeadlineMs: 900_000,
      viewFolder: "/state/served/gateway-0",
    });
    const elsewhere = read({ ...vllm, HONE_INFERENCE_ENGINE_LINKS_DIR: "/links" });
    assert.ok(elsewhere.kind === "vllm" && elsewhere.viewFolder === "/links");
    await using folder = await temporaryFolder("config");
    const file = path.join(folder.path, "key");
    await writeFile(file, "admin");
    const keyed = read({
      HONE_INFERENCE_ENGINE: "sglang",
      HONE_INFERENCE_ENGINE_URL: url,
      HONE_INFERENCE_ENGINE_API_KEY: "plain",
      HONE_INFERENCE_ENGINE_ADMIN_KEY_FILE: file,
    });
    assert.ok(keyed.kind === "sglang" && keyed.apiKey === "plain" && keyed.adminKey === "admin");
  });

  test("refuses an engine without its server, and settings that the engine would ignore", () => {
    const url = "http://127.0.0.1:8000";
    const vllm = { HONE_INFERENCE_ENGINE: "vllm", HONE_INFERENCE_ENGINE_URL: url };
    const wrong: [string, Record<string, string>][] = [
      ["HONE_INFERENCE_ENGINE_URL", { HONE_INFERENCE_ENGINE: "vllm" }],
      ["HONE_INFERENCE_ENGINE_URL", { HONE_INFERENCE_ENGINE_URL: url }],
      ["HONE_INFERENCE_ENGINE_API_KEY", { HONE_INFERENCE_ENGINE_API_KEY: "key" }],
      ["HONE_INFERENCE_ENGINE_LINKS_DIR", { HONE_INFERENCE_ENGINE_LINKS_DIR: "/links" }],
      ["HONE_INFERENCE_ENGINE_ADMIN_KEY", { ...vllm, HONE_INFERENCE_ENGINE_ADMIN_KEY: "key" }],
      ["HONE_INFERENCE_SERVE", { ...vllm, HONE_INFERENCE_SERVE: "/a/model" }],
      ["HONE_INFERENCE_SERVE_QUANTIZATION", { ...vllm, HONE_INFERENCE_SERVE_QUANTIZATION: "int8" }],
    ];
    for (const [variable, environment] of wrong) {
      assert.throws(
        () => readInferenceGatewayConfig(environment),
        (error) => error instanceof SettingError && error.message.includes(variable),
        variable,
      );
    }
    assert.throws(() => readInferenceGatewayConfig({ ...vllm, HONE_INFERENCE_ENGINE_URL: "ftp://host" }));
    assert.throws(() => readInferenceGatewayConfig({ HONE_INFERENCE_ENGINE: "tgi" }));
  });
});
