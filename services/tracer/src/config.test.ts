import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SettingError } from "@hone/service-kit";
import { readTracerConfig } from "./config.ts";

describe("readTracerConfig()", () => {
  const shared = "postgres://hone@there/hone";
  const own = "postgres://tracer@elsewhere/page";

  test("names the shared database unless the tracer has a database of its own", () => {
    assert.deepEqual(readTracerConfig({ HONE_DATABASE_URL: shared }).database, {
      kind: "known",
      url: shared,
    });
    const both = { HONE_DATABASE_URL: shared, HONE_TRACER_DATABASE_URL: own };
    assert.deepEqual(readTracerConfig(both).database, { kind: "known", url: own });
    assert.deepEqual(readTracerConfig({ HONE_TRACER_DATABASE_URL_FILE: "/there/url" }).database, {
      kind: "told",
      file: "/there/url",
      variable: "HONE_TRACER_DATABASE_URL_FILE",
    });
  });

  test("refuses the address of its own database when it is given both directly and by a file", () => {
    assert.throws(
      () => readTracerConfig({ HONE_TRACER_DATABASE_URL: own, HONE_TRACER_DATABASE_URL_FILE: "/there/url" }),
      (error) =>
        error instanceof SettingError &&
        /HONE_TRACER_DATABASE_URL_FILE must be absent where HONE_TRACER_DATABASE_URL is set/.test(
          error.message,
        ),
    );
  });
});
