import assert from "node:assert/strict";
import { test } from "node:test";
import { findProject } from "../project.ts";
import { type ServiceSettings, serviceEnvironment } from "./service-process.ts";
import { replicaOf } from "./services.ts";

const PROJECT = findProject({ HONE_STATE_DIR: "/there/.hone" });
const SETTINGS: ServiceSettings = {
  nats: { server: { file: "/there/bus.url" }, isEmbedded: true },
  database: undefined,
  tracerUrl: "",
  logLevel: "info",
};

test("a service without rows gets no address of a database, even if this process has one", () => {
  const given = {
    HONE_DATABASE_URL: "postgres://hone:secret@there/hone",
    HONE_DATABASE_URL_FILE: "/there/url",
  };
  const variables = { ...given, ...serviceEnvironment(PROJECT, replicaOf("judge", 0), SETTINGS, 0) };
  assert.deepEqual([variables.HONE_DATABASE_URL, variables.HONE_DATABASE_URL_FILE], ["", ""]);
});

test("a service with rows gets its own address file", () => {
  const settings = { ...SETTINGS, database: { file: "/there/trainer.url" } };
  const variables = serviceEnvironment(PROJECT, replicaOf("trainer", 0), settings, 0);
  assert.deepEqual(
    [variables.HONE_DATABASE_URL, variables.HONE_DATABASE_URL_FILE],
    ["", "/there/trainer.url"],
  );
});

test("only the tracer gets the address of its own database, and then no other", () => {
  const given = { HONE_TRACER_DATABASE_URL: "postgres://tracer:secret@elsewhere/page" };
  using _ = setVariables(given);
  const settings = { ...SETTINGS, database: { file: "/there/tracer.url" } };
  const variables = (service: "tracer" | "trainer" | "judge") => {
    const { HONE_TRACER_DATABASE_URL: own, HONE_DATABASE_URL_FILE: shared } = {
      ...given,
      ...serviceEnvironment(PROJECT, replicaOf(service, 0), settings, 0),
    } as Record<string, string>;
    return { own, shared };
  };
  assert.deepEqual(variables("tracer"), { own: given.HONE_TRACER_DATABASE_URL, shared: "" });
  assert.deepEqual(variables("trainer"), { own: "", shared: "/there/tracer.url" });
  assert.deepEqual(variables("judge").own, "");
});

/** Variables of this process, until the scope ends. */
function setVariables(variables: Readonly<Record<string, string>>): Disposable {
  Object.assign(process.env, variables);
  return {
    [Symbol.dispose]() {
      for (const name of Object.keys(variables)) delete process.env[name];
    },
  };
}
