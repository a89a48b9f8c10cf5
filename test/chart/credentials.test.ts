/** The passwords that the chart makes: at the first install, and never again. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiServer } from "./cluster/api-server.ts";
import { type Manifest, render } from "./helm.ts";
import { program, skip } from "./profiles.ts";

/** Name -> texts of each Secret. */
function secretsOf(manifests: readonly Manifest[]): Record<string, Record<string, string>> {
  const secrets = manifests.filter(({ kind }) => kind === "Secret");
  return Object.fromEntries(secrets.map(({ metadata, stringData }) => [metadata.name, stringData]));
}

/** What helm makes of the chart where the cluster has these objects. */
async function renderOver(installed: readonly Manifest[], set: readonly string[] = []) {
  await using api = await ApiServer.start(installed);
  const manifests = await render(program, { profile: "cpu", set, apiServer: api.url });
  assert.ok(api.asked.includes("hone-nats-users") && api.asked.includes("hone-postgres-passwords"));
  return manifests;
}

describe("passwords", { skip }, () => {
  test("are random: no two are alike, and another install has others", async () => {
    const [first, other] = [secretsOf(await renderOver([])), secretsOf(await renderOver([]))];
    const passwords = (secrets: typeof first) =>
      ["hone-nats-users", "hone-postgres-passwords"].flatMap((name) => Object.values(secrets[name] ?? {}));
    const all = [...passwords(first), ...passwords(other)];
    assert.equal(all.length, 22);
    assert.equal(new Set(all).size, all.length);
    for (const password of all) assert.match(password, /^p[A-Za-z0-9]{31}$/);
  });

  test("stay through an upgrade, in the servers' Secrets and in the services'", async () => {
    const installed = await renderOver([]);
    const upgraded = await renderOver(installed, ["logLevel=debug", "image.tag=0.1.1"]);
    assert.deepEqual(secretsOf(upgraded), secretsOf(installed));
  });

  test("of a user that a newer chart brings are made, and the others stay", async () => {
    const installed = await renderOver([]);
    const before = installed.map((manifest) => {
      if (manifest.metadata.name !== "hone-nats-users") return manifest;
      const { tracer: _, ...stringData } = manifest.stringData;
      return { ...manifest, stringData };
    });
    const { "hone-nats-users": users = {} } = secretsOf(await renderOver(before));
    const { "hone-nats-users": old = {} } = secretsOf(installed);
    assert.notEqual(users.tracer, old.tracer);
    assert.deepEqual({ ...users, tracer: old.tracer }, old);
  });
});
