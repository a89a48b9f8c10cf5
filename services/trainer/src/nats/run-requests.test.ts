import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { RunRequestSchema } from "@hone/proto-gen/run";
import { runFileOf } from "./run-requests.ts";

const text = (value: string) => runFileOf(new TextEncoder().encode(value));

describe("textOf()", () => {
  test("takes the run file out of a RunRequest", () => {
    const request = create(RunRequestSchema, { runFile: "name: a\nseed: 1\n", requestedBy: "me" });
    assert.equal(runFileOf(toBinary(RunRequestSchema, request)), "name: a\nseed: 1\n");
  });

  test("takes a body that is not a RunRequest for the run file itself", () => {
    for (const value of ["name: a\n", '{"name": "a"}', "", "\n", "\nname: a", "\n\u0003abc\n"]) {
      assert.equal(text(value), value, JSON.stringify(value));
    }
  });
});
