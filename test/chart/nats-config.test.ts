/** Checks the bus's configuration of each profile that has a bus with a real nats-server. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { findNatsServer } from "@hone/embedded";
import { accountOf, BUS_USERS, busAccounts, ServiceName, SINKS, StreamName } from "@hone/messaging";
import { temporaryFolder } from "@hone/testing";
import { findHelm, type Manifest, render } from "./helm.ts";

const TIMEOUT_MS = 30_000;
const helm = await findHelm();
const skip = helm.kind === "missing" ? helm.why : false;
const program = helm.kind === "found" ? helm.program : "";

async function busOf(
  profile: string,
  set: readonly string[] = [],
): Promise<{ config: string; pod: Manifest }> {
  const manifests = await render(program, { profile, set });
  const named = (kind: string) =>
    manifests.find((each) => each.kind === kind && each.metadata.name === "hone-nats") ?? assert.fail(kind);
  return { config: named("ConfigMap").data["nats.conf"], pod: named("StatefulSet").spec.template.spec };
}

test("the chart's accounts have the rights that `hone up` gives", () => {
  const file = path.join(import.meta.dirname, "..", "..", "helm", "hone", "files", "bus-accounts.json");
  assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), busAccounts(), "run npm run generate");
});

describe("the configuration of the bus", { skip }, () => {
  for (const profile of ["cpu", "multi-node", "observability"]) {
    test(`of ${profile} is accepted by nats-server`, async () => {
      await using folder = await temporaryFolder("nats-config");
      const { config, pod } = await busOf(profile);
      const file = path.join(folder.path, "nats.conf");
      await writeFile(file, config);
      const { path: server } = await findNatsServer({ fallbackCacheDir: folder.path });
      const names = pod.containers[0].env.map(({ name }: Manifest) => name);
      const env = Object.fromEntries(names.map((name: string) => [name, "p4ssw0rd"]));
      const read = (given: Record<string, string>) =>
        spawnSync(server, ["-t", "-c", file], { env: given, encoding: "utf8", timeout: TIMEOUT_MS });
      assert.equal(read(env).status, 0, read(env).stderr);
      // Every variable must be used: without one of them the configuration is refused.
      for (const name of names) {
        const { [name]: _, ...others } = env;
        assert.notEqual(read(others).status, 0, `${name} is not used`);
      }
    });
  }

  test("has an account for each user, also for the sinks if there are any, and one for the streams", async () => {
    for (const [account, profile, set] of [
      ["HONE", "observability"],
      ["HONE", "cpu"],
      ["bus", "cpu", ["nats.account=bus"]],
      ["bus", "observability", ["nats.account=bus"]],
    ] as const) {
      const { config } = await busOf(profile, set);
      const found = [...config.matchAll(/^ {2}([\w-]+) \{$/gm)].map(([, name]) => name);
      const users = BUS_USERS.filter((user) => user !== SINKS || profile === "observability");
      const expected = users.map((user) => accountOf(user).replace("HONE", account));
      assert.deepEqual(found.sort(), expected.sort());
      const named = [...config.matchAll(/"account":"([^"]+)"/g)].map(([, name]) => name ?? "");
      assert.deepEqual(
        [...new Set(named)].filter((name) => !expected.includes(name)),
        [],
      );
      assert.equal(config.match(/jetstream: enabled/g)?.length, 1);
    }
  });

  test("has a user for each service, and only the trainer may create, change, purge or delete a stream of work", async () => {
    const { config } = await busOf("cpu");
    const users = config.split(/user: /).map((text) => text.split("\n      }\n")[0] ?? "");
    const mayOf = (user: string) => users.find((text) => text.startsWith(`"${user}"`)) ?? assert.fail(user);
    for (const user of [...Object.values(ServiceName), "client"]) {
      const may = mayOf(user);
      assert.doesNotMatch(
        may,
        /\$JS\.API\.STREAM\.(DELETE|RESTORE|MSG\.DELETE)|"\$JS\.API\.>"|"hone\.>"|">"/,
        user,
      );
      for (const stream of Object.values(StreamName)) {
        const isAllowed = new RegExp(`STREAM\\.(CREATE|UPDATE|PURGE)\\.(${stream}|\\*|>)"`).test(may);
        assert.equal(isAllowed, user === ServiceName.trainer, `${user} and ${stream}`);
      }
    }
  });
});
