import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isSecretName, redactText } from "./redact.ts";

describe("isSecretName()", () => {
  for (const name of [
    "password",
    "dbPassword",
    "HF_TOKEN",
    "api_key",
    "accessKey",
    "client-secret",
    "Authorization",
  ]) {
    test(`hides ${name}`, () => assert.equal(isSecretName(name), true));
  }
  for (const name of ["tokens", "tokenIds", "maxNewTokens", "key", "groupKey", "tokenizer", "passed", ""]) {
    test(`shows ${JSON.stringify(name)}`, () => assert.equal(isSecretName(name), false));
  }
});

describe("redactText()", () => {
  test("removes user and password from URLs and leaves the rest", () => {
    assert.equal(
      redactText("tried postgres://a:b%40c@db:5432/x?y=1, then nats://t0ken@bus"),
      "tried postgres://[redacted]@db:5432/x?y=1, then nats://[redacted]@bus",
    );
    assert.equal(redactText("see http://host/a@b and mail me@home"), "see http://host/a@b and mail me@home");
  });

  test("removes bearer tokens and assigned secrets", () => {
    assert.equal(redactText("Authorization: Bearer abc.def-123456"), "Authorization: Bearer [redacted]");
    assert.equal(redactText("?access_token=abc&n=1"), "?access_token=[redacted]&n=1");
    assert.equal(redactText('HF_TOKEN="abc def" ok'), "HF_TOKEN=[redacted] ok");
  });

  test("leaves everyday sentences alone", () => {
    const text = "tokens: 12, maxNewTokens=16, tokenizer=tokenizer.json, key=run.seed";
    assert.equal(redactText(text), text);
  });
});
