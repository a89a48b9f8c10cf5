/** Tests of the passwords that the chart creates at the first install and keeps afterwards. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { chartRolesScript } from "@hone/storage";
import { ApiServer } from "./cluster/api-server.ts";
import { type Manifest, render } from "./helm.ts";
import { podOf, program, skip } from "./profiles.ts";

/** The texts of each Secret, by its name. */
function secretsOf(manifests: readonly Manifest[]): Record<string, Record<string, string>> {
  const secrets = manifests.filter(({ kind }) => kind === "Secret");
  return Object.fromEntries(secrets.map(({ metadata, stringData }) => [metadata.name, stringData]));
}

/** Renders the chart as an upgrade of these objects. */
async function renderOver(installed: readonly Manifest[], set: readonly string[] = []) {
  await using api = await ApiServer.start(installed);
  const manifests = await render(program, { profile: "cpu", set, apiServer: api.url });
  assert.ok(api.asked.includes("hone-nats-users") && api.asked.includes("hone-postgres-passwords"));
  return manifests;
}

test("the roles of the chart's database are those that `hone up` creates", () => {
  const file = path.join(import.meta.dirname, "..", "..", "helm", "hone", "files", "roles.sql");
  assert.equal(readFileSync(file, "utf8"), chartRolesScript(), "run npm run generate");
});

describe("passwords", { skip }, () => {
  test("are random: all differ, and another install has others", async () => {
    const [first, other] = [secretsOf(await renderOver([])), secretsOf(await renderOver([]))];
    const passwords = (secrets: typeof first) =>
      ["hone-nats-users", "hone-postgres-passwords"].flatMap((name) => Object.values(secrets[name] ?? {}));
    const all = [...passwords(first), ...passwords(other)];
    assert.equal(all.length, 22);
    assert.equal(new Set(all).size, all.length);
    for (const password of all) assert.match(password, /^p[A-Za-z0-9]{31}$/);
  });

  test("are kept by an upgrade, in the Secrets of servers and services", async () => {
    const installed = await renderOver([]);
    const upgraded = await renderOver(installed, ["logLevel=debug", "image.tag=0.1.1"]);
    assert.deepEqual(secretsOf(upgraded), secretsOf(installed));
  });

  test("are created for a user that a newer chart adds, and the others are kept", async () => {
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

describe("the tracer's own database", { skip }, () => {
  const set = ["tracer.database.existingSecret=page-database"];
  const addresses = (manifests: readonly Manifest[], component: string) => {
    const pod = podOf(manifests, component);
    const container = pod.containers.find((each: { name: string }) => each.name === component);
    const env = (container?.env ?? []) as { name: string; value?: string }[];
    const mounts = (container?.volumeMounts ?? []) as { name: string; mountPath: string }[];
    const volumes = pod.volumes as { name: string; secret?: { secretName: string } }[];
    return env
      .filter(({ name }) => name.includes("DATABASE_URL"))
      .map(({ name, value = "" }) => {
        const mount = mounts.find(({ mountPath }) => value.startsWith(`${mountPath}/`));
        return `${name} ${volumes.find((volume) => volume.name === mount?.name)?.secret?.secretName}`;
      });
  };

  test("has its address in a separate Secret, which only the tracer gets", async () => {
    const manifests = await renderOver([], set);
    assert.deepEqual(addresses(manifests, "tracer"), ["HONE_TRACER_DATABASE_URL_FILE page-database"]);
    assert.deepEqual(addresses(manifests, "trainer"), ["HONE_DATABASE_URL_FILE hone-trainer-credentials"]);
    const secrets = secretsOf(manifests);
    assert.deepEqual(Object.keys(secrets["hone-tracer-credentials"] ?? {}), ["nats-url"]);
    assert.deepEqual(Object.keys(secrets["hone-trainer-credentials"] ?? {}), ["nats-url", "database-url"]);
  });

  test("is that of the trainer unless values name another", async () => {
    const manifests = await renderOver([]);
    assert.deepEqual(addresses(manifests, "tracer"), ["HONE_DATABASE_URL_FILE hone-tracer-credentials"]);
    assert.ok("database-url" in (secretsOf(manifests)["hone-tracer-credentials"] ?? {}));
  });
});

describe("the token of the page", { skip }, () => {
  /** Variables of a service's container that come from a Secret, as `<secret>/<key>` by name. */
  const secretVariables = (manifests: readonly Manifest[], component: string) => {
    const container = podOf(manifests, component).containers.find(
      (each: { name: string }) => each.name === component,
    );
    const env = (container?.env ?? []) as {
      name: string;
      valueFrom?: { secretKeyRef?: { name: string; key: string } };
    }[];
    return Object.fromEntries(
      env.flatMap(({ name, valueFrom }) =>
        valueFrom?.secretKeyRef === undefined
          ? []
          : [[name, `${valueFrom.secretKeyRef.name}/${valueFrom.secretKeyRef.key}`]],
      ),
    );
  };

  test("is random, is kept by an upgrade, and is given to services that send spans and to the gateway's API", async () => {
    const installed = await renderOver([]);
    const { token } = secretsOf(installed)["hone-tracer-token"] ?? {};
    assert.match(token ?? "", /^p[A-Za-z0-9]{31}$/);
    assert.equal(secretsOf(await renderOver(installed))["hone-tracer-token"]?.token, token);
    for (const component of ["tracer", "trainer", "judge", "dataset", "agent-rollout", "inference-gateway"]) {
      assert.equal(
        secretVariables(installed, component).HONE_TRACER_TOKEN,
        "hone-tracer-token/token",
        component,
      );
    }
    assert.equal(
      secretVariables(installed, "inference-gateway").HONE_INFERENCE_API_KEY,
      "hone-tracer-token/token",
    );
  });

  test("comes from the user's Secret if values name one", async () => {
    const set = ["tracer.tokenSecret.name=own", "tracer.tokenSecret.key=page"];
    const manifests = await renderOver([], set);
    assert.equal(secretsOf(manifests)["hone-tracer-token"], undefined);
    assert.equal(secretVariables(manifests, "tracer").HONE_TRACER_TOKEN, "own/page");
  });

  test("is sent only to the tracer", async () => {
    const manifests = await renderOver([], ["telemetry.route=straight"]);
    assert.equal(secretVariables(manifests, "judge").HONE_TRACER_TOKEN, undefined);
    assert.equal(secretVariables(manifests, "tracer").HONE_TRACER_TOKEN, "hone-tracer-token/token");
  });
});

test("services accept requests for their own names, the page's name and those that values add", {
  skip,
}, async () => {
  const manifests = await render(program, {
    profile: "cpu",
    set: ["tracer.publicUrl=https://hone.example.org", "allowedHosts[0]=other.example.org"],
  });
  const container = podOf(manifests, "tracer").containers.find(
    (each: { name: string }) => each.name === "tracer",
  );
  const env = (container?.env ?? []) as { name: string; value?: string }[];
  const hosts = env.find(({ name }) => name === "HONE_HTTP_ALLOWED_HOSTS")?.value ?? "";
  for (const host of ["hone-tracer", ".svc", ".svc.cluster.local", "hone.example.org", "other.example.org"]) {
    assert.ok(hosts.split(",").includes(host), hosts);
  }
});
