import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { InvalidInputError } from "@hone/core";
import { ConfigError } from "../errors.ts";
import { BoundKeys } from "./bound-keys.ts";

/* The attacker may publish run files, and so chooses the addresses. */

const NAME = "HONE_JUDGE_KEY_X";
const keys = (hosts: string | undefined) =>
  new BoundKeys("HONE_JUDGE_KEY", { [NAME]: "secret", [`${NAME}_HOSTS`]: hosts }, "the judge");
const isSent = (hosts: string | undefined, address: string) => {
  try {
    return keys(hosts).keyFor(NAME, address, "judge.keyVariable") === "secret";
  } catch (error) {
    if (error instanceof InvalidInputError) return false;
    throw error;
  }
};

describe("keys that are bound to hosts", () => {
  test("are sent to their hosts over https", () => {
    const hosts = "api.example.com, judge.internal:8443";
    for (const address of [
      "https://api.example.com/v1",
      "https://API.example.com:443/v1/chat?x=1",
      "https://judge.internal:8443/",
    ]) {
      assert.equal(isSent(hosts, address), true, address);
    }
  });

  test("are sent to no other host, whatever an address looks like", () => {
    const hosts = "api.example.com,judge.internal:8443";
    for (const address of [
      "https://evil.example/v1",
      "http://api.example.com/v1",
      "https://api.example.com:8443/v1",
      "https://judge.internal/",
      "https://api.example.com@evil.example/",
      "https://api.example.com.evil.example/",
      "https://evil.example/api.example.com",
      "https://evil.example#api.example.com",
      "https://evilapi.example.com/",
      "http://127.0.0.1:8000/",
    ]) {
      assert.equal(isSent(hosts, address), false, address);
    }
    assert.equal(isSent(undefined, "https://api.example.com/"), false);
    assert.equal(isSent("", "http://127.0.0.1/"), false);
  });

  test("are sent over plain HTTP only to hosts bound with http://, and on this machine", () => {
    assert.equal(isSent("http://judge.internal:8000", "http://judge.internal:8000/score"), true);
    assert.equal(isSent("http://judge.internal:8000", "https://judge.internal:8000/score"), false);
    assert.equal(isSent("judge.internal:8000", "http://judge.internal:8000/score"), false);
    assert.equal(isSent("127.0.0.1:8000", "http://127.0.0.1:8000/score"), true);
    assert.equal(isSent("127.0.0.1:8000", "http://127.0.0.1:8001/score"), false);
    assert.equal(isSent("localhost", "http://localhost:8001/score"), true);
    assert.equal(isSent("[::1]", "http://[::1]:8001/score"), true);
    assert.equal(isSent("localhost", "http://localhost.evil.example/score"), false);
  });

  test("are refused with the variable's name and the value it needs", () => {
    const refusal = (hosts: string, address: string) => {
      try {
        keys(hosts).keyFor(NAME, address, "judge.keyVariable");
      } catch (error) {
        return error instanceof InvalidInputError ? error.message : "";
      }
      return "";
    };
    assert.equal(
      refusal("", "https://api.example.com/v1"),
      "HONE_JUDGE_KEY_X is bound to no host, and judge.keyVariable would send it to https://api.example.com; if it may go there, add api.example.com to HONE_JUDGE_KEY_X_HOSTS of the judge",
    );
    assert.match(refusal("a.example", "http://b.example:81/"), /add http:\/\/b\.example:81 to .*unencrypted/);
    assert.match(refusal("a.example", "https://b.example"), /may be sent to https:\/\/a\.example only/);
    // Following the advice of the message helps.
    assert.equal(isSent("http://b.example:81", "http://b.example:81/"), true);
  });

  test("are read from variables with the prefix only, and not from the lists of hosts", () => {
    const all = new BoundKeys(
      "HONE_JUDGE_KEY",
      { [NAME]: "s", [`${NAME}_HOSTS`]: "a.example", HF_TOKEN: "t", HF_TOKEN_HOSTS: "a.example" },
      "the judge",
    );
    for (const name of [`${NAME}_HOSTS`, "HF_TOKEN"]) {
      assert.throws(() => all.keyFor(name, "https://a.example", "k"), /which is not set for the judge/);
    }
  });

  test("are refused when the service starts if a binding is not a list of hosts", () => {
    for (const hosts of [
      "*",
      "*.example.com",
      "https://a.example/path",
      "user@a.example",
      "ftp://a.example",
      "a b",
    ]) {
      assert.throws(
        () => keys(hosts),
        (error) => error instanceof ConfigError && /_HOSTS holds/.test(error.message),
      );
    }
  });
});
