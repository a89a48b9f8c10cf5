import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RetryableError } from "@hone/core";
import { DrizzleQueryError } from "./drizzle.ts";
import {
  ConstraintViolationError,
  DatabaseClosedError,
  DatabaseFullError,
  DatabaseReadOnlyError,
  DatabaseRefusedError,
  DatabaseTimeoutError,
  DatabaseUnavailableError,
  SerializationError,
  translateDatabaseError,
  UniqueViolationError,
} from "./errors.ts";

function postgresError(code: string, fields: object = {}): Error {
  return Object.assign(new Error("server text"), { name: "PostgresError", code, ...fields });
}

function systemError(code: string): Error {
  return Object.assign(new Error("connect"), { code });
}

describe("translateDatabaseError()", () => {
  const cases: ReadonlyArray<[Error, new (...args: never[]) => Error, boolean]> = [
    [systemError("ECONNREFUSED"), DatabaseUnavailableError, true],
    [systemError("CONNECTION_CLOSED"), DatabaseUnavailableError, true],
    [systemError("CONNECT_TIMEOUT"), DatabaseUnavailableError, true],
    [postgresError("57P03"), DatabaseUnavailableError, true],
    [postgresError("53300"), DatabaseUnavailableError, true],
    [postgresError("08006"), DatabaseUnavailableError, true],
    [postgresError("53100"), DatabaseFullError, true],
    [postgresError("25006"), DatabaseReadOnlyError, true],
    [postgresError("57014"), DatabaseTimeoutError, true],
    [postgresError("55P03"), DatabaseTimeoutError, true],
    [postgresError("40001"), SerializationError, true],
    [postgresError("40P01"), SerializationError, true],
    [postgresError("23505"), UniqueViolationError, false],
    [postgresError("23503"), ConstraintViolationError, false],
    [postgresError("28P01"), DatabaseRefusedError, false],
    [systemError("CONNECTION_ENDED"), DatabaseClosedError, false],
  ];
  for (const [source, type, isRetryable] of cases) {
    test(`translates ${"code" in source ? source.code : ""} to a ${type.name}`, () => {
      const wrapped = new DrizzleQueryError("select $1", ["a secret value"], source);
      for (const error of [source, wrapped]) {
        const typed = translateDatabaseError(error, "read the run");
        assert.ok(typed instanceof type);
        assert.equal(typed instanceof RetryableError, isRetryable);
        assert.doesNotMatch(typed.message, /secret value/);
      }
    });
  }

  test("returns errors that are not the database's unchanged", () => {
    const own = new Error("mine");
    assert.equal(translateDatabaseError(own, "read"), own);
    const wrapped = new UniqueViolationError("runs", "runs_pkey");
    assert.equal(translateDatabaseError(wrapped, "read"), wrapped);
    assert.equal(translateDatabaseError("text", "read"), "text");
    const missingFile = systemError("EISDIR");
    assert.equal(translateDatabaseError(missingFile, "read"), missingFile);
  });
});
