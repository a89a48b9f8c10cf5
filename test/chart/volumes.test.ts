/** Tests of volumes, and of what is kept when a release is uninstalled. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmod, chown, mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { EPISODES_MAX_BYTES, PAYLOAD_WRITERS, payloadStoreBytes } from "@hone/messaging";
import { temporaryFolder } from "@hone/testing";
import { type Manifest, render } from "./helm.ts";
import { DEFAULTS, manifestsOf, PROFILES, podOf, podsOf, program, SERVICES, skip } from "./profiles.ts";

const KEEP = "helm.sh/resource-policy";

const ofKind = (manifests: readonly Manifest[], kind: string) =>
  manifests.filter((each) => each.kind === kind);
const withClaims = (manifests: readonly Manifest[]) =>
  ofKind(manifests, "StatefulSet").filter(({ spec }) => spec.volumeClaimTemplates !== undefined);

/** The claims that pods mount, by component. */
function claimsMounted(manifests: readonly Manifest[]): Map<string, string[]> {
  return new Map(
    podsOf(manifests).map(({ component, spec }) => [
      component,
      (spec.volumes ?? []).flatMap((volume: Manifest) => volume.persistentVolumeClaim?.claimName ?? []),
    ]),
  );
}

/** The containers that may write to a claim. */
function writersOf(spec: Manifest): { claim: string; container: Manifest }[] {
  return spec.containers.flatMap((container: Manifest) =>
    (container.volumeMounts ?? []).flatMap(({ name, readOnly }: Manifest) => {
      const volume = (spec.volumes ?? []).find((each: Manifest) => each.name === name);
      const claim = volume?.persistentVolumeClaim;
      return claim === undefined || claim.readOnly || readOnly ? [] : [{ claim: claim.claimName, container }];
    }),
  );
}

/** A container's setting overrides its pod's. */
function accountOf(spec: Manifest, container: Manifest): { readonly uid: number; readonly gid: number } {
  const { runAsUser, runAsGroup } = { ...spec.securityContext, ...container.securityContext };
  return { uid: runAsUser, gid: runAsGroup };
}

describe("helm uninstall", { skip }, () => {
  for (const profile of PROFILES) {
    test(`of ${profile} keeps every volume and every password`, async () => {
      const manifests = await manifestsOf(profile);
      for (const { kind, metadata } of [
        ...ofKind(manifests, "PersistentVolumeClaim"),
        ...ofKind(manifests, "Secret"),
      ]) {
        assert.equal(metadata.annotations?.[KEEP], "keep", `${kind} ${metadata.name}`);
      }
      for (const { metadata, spec } of withClaims(manifests)) {
        assert.deepEqual(
          spec.persistentVolumeClaimRetentionPolicy,
          { whenScaled: "Retain", whenDeleted: "Retain" },
          metadata.name,
        );
      }
    });
  }

  test("removes volumes if storage.keep is false, but no password", async () => {
    const manifests = await render(program, { set: ["storage.keep=false"] });
    const claims = ofKind(manifests, "PersistentVolumeClaim");
    assert.deepEqual(claims.map(({ metadata }) => metadata.name).sort(), [
      "hone-jaeger",
      "hone-models",
      "hone-state",
    ]);
    for (const { metadata } of claims) assert.equal(metadata.annotations?.[KEEP], undefined, metadata.name);
    const sets = withClaims(manifests);
    assert.deepEqual(sets.map(({ metadata }) => metadata.name).sort(), ["hone-nats", "hone-postgres"]);
    for (const { metadata, spec } of sets) {
      const { whenDeleted, whenScaled } = spec.persistentVolumeClaimRetentionPolicy;
      assert.deepEqual([whenDeleted, whenScaled], ["Delete", "Retain"], metadata.name);
    }
    for (const { metadata } of ofKind(manifests, "Secret")) assert.equal(metadata.annotations[KEEP], "keep");
  });
});

describe("volumes", { skip }, () => {
  test("weights, models and files are on existing claims if values name them, and no claim is created", async () => {
    const manifests = await manifestsOf("external-services");
    assert.deepEqual(ofKind(manifests, "PersistentVolumeClaim"), []);
    const mounted = claimsMounted(manifests);
    assert.deepEqual(mounted.get("trainer")?.sort(), ["hone-models", "hone-project", "hone-state"]);
    assert.deepEqual(mounted.get("inference-gateway")?.sort(), ["hone-models", "hone-project", "hone-state"]);
    const own = await render(program, {
      set: [
        "storage.state.existingClaim=weights",
        "storage.models.existingClaim=cache",
        "jaeger.volume.existingClaim=spans",
      ],
    });
    assert.deepEqual(claimsMounted(own).get("trainer")?.sort(), ["cache", "weights"]);
    assert.deepEqual(claimsMounted(own).get("jaeger"), ["spans"]);
    assert.deepEqual(ofKind(own, "PersistentVolumeClaim"), []);
  });

  test("packages for the sandbox are mounted read-only where code of models runs, if a claim is named", async () => {
    const manifests = await render(program, {
      set: ["agentRollout.sandboxPackages.existingClaim=wheels", "storage.files.existingClaim=project"],
    });
    const mounted = claimsMounted(manifests);
    assert.deepEqual(
      [...mounted].filter(([, claims]) => claims.includes("wheels")).map(([name]) => name),
      ["agent-rollout"],
    );
    const { spec } =
      podsOf(manifests).find(({ component }) => component === "agent-rollout") ?? assert.fail();
    assert.equal(
      writersOf(spec).some(({ claim }) => claim === "wheels"),
      false,
    );
    const [{ env, volumeMounts }] = spec.containers;
    const named = env.find(({ name }: Manifest) => name === "HONE_SANDBOX_PACKAGES");
    assert.equal(
      named.value,
      volumeMounts.find(({ name }: Manifest) => name === "sandbox-packages").mountPath,
    );
    const { spec: bare } = podsOf(await render(program, {})).find(
      ({ component }) => component === "agent-rollout",
    )!;
    assert.ok(!bare.containers[0].env.some(({ name }: Manifest) => name === "HONE_SANDBOX_PACKAGES"));
  });

  test("the socket of a container runtime is in no pod unless values name it, and then in that of agent-rollout alone", async () => {
    const socketsOf = (manifests: readonly Manifest[]) =>
      podsOf(manifests).flatMap(({ component, spec }) =>
        (spec.volumes ?? [])
          .filter(({ hostPath }: Manifest) => hostPath !== undefined)
          .map(({ hostPath }: Manifest) => [component, hostPath.path, hostPath.type]),
      );
    for (const profile of PROFILES) assert.deepEqual(socketsOf(await manifestsOf(profile)), [], profile);
    const manifests = await render(program, {
      set: [
        "agentRollout.containers.socketPath=/run/user/1000/podman/podman.sock",
        "agentRollout.containers.group=988",
        "agentRollout.containers.images={swe/*,python:3}",
      ],
    });
    assert.deepEqual(socketsOf(manifests), [
      ["agent-rollout", "/run/user/1000/podman/podman.sock", "Socket"],
    ]);
    const { spec } =
      podsOf(manifests).find(({ component }) => component === "agent-rollout") ?? assert.fail();
    assert.deepEqual(spec.securityContext.supplementalGroups, [988]);
    const settingOf = (variable: string) =>
      spec.containers[0].env.find(({ name }: Manifest) => name === variable)?.value;
    assert.equal(settingOf("HONE_CONTAINER_IMAGES"), "swe/*,python:3");
    assert.deepEqual(["HONE_CONTAINERS", "HONE_CONTAINER_MEMORY_MIB", "HONE_CONTAINER_CPUS"].map(settingOf), [
      "16",
      "2048",
      "2",
    ]);
    const mount = spec.containers[0].volumeMounts.find(({ name }: Manifest) => name === "containers");
    assert.equal(mount.mountPath, settingOf("HONE_CONTAINER_SOCKET"));
  });

  test("without a claim for models, each pod has its own cache", async () => {
    const manifests = await render(program, { set: ["storage.models.size="] });
    assert.deepEqual(claimsMounted(manifests).get("trainer"), ["hone-state"]);
    const { spec } = podsOf(manifests).find(({ component }) => component === "trainer") ?? assert.fail();
    const models = spec.volumes.find(({ name }: Manifest) => name === "models");
    assert.deepEqual(models.emptyDir, {});
  });

  test("only containers that write weights may write to the volume of states", async () => {
    const writers = podsOf(await manifestsOf("vllm-fsdp2")).filter(({ spec }) =>
      spec.containers.some((container: Manifest) =>
        (container.volumeMounts ?? []).some(
          ({ name, readOnly }: Manifest) =>
            name === "state" &&
            readOnly !== true &&
            spec.volumes.some((volume: Manifest) => volume.name === "state" && volume.persistentVolumeClaim),
        ),
      ),
    );
    assert.deepEqual(writers.map(({ component }) => component).sort(), ["dataset", "trainer"]);
  });

  test("all containers that write to a claim run as one account, whose group owns the volume", async () => {
    for (const profile of PROFILES) {
      const accounts = new Map<string, Set<string>>();
      for (const { component, spec } of podsOf(await manifestsOf(profile))) {
        for (const { claim, container } of writersOf(spec)) {
          const { uid, gid } = accountOf(spec, container);
          const account = `${uid}:${gid}, volumes of ${spec.securityContext.fsGroup}`;
          accounts.set(claim, (accounts.get(claim) ?? new Set()).add(account));
          assert.equal(gid, spec.securityContext.fsGroup, `${container.name} of ${component}`);
        }
      }
      assert.ok(accounts.size >= 2, profile);
      for (const [claim, found] of accounts)
        assert.equal(found.size, 1, `${profile}: ${claim}: ${[...found]}`);
    }
  });

  test("a server that must run as another account has its own volume of models", async () => {
    const own = "inferenceGateway.engine.securityContext.runAsUser";
    const modelsOf = async (user: number) => {
      const manifests = await render(program, { profile: "vllm-fsdp2", set: [`${own}=${user}`] });
      const { containers, volumes } = podOf(manifests, "inference-gateway");
      const server = containers.find(({ name }: Manifest) => name === "engine");
      const { name } = server.volumeMounts.find(({ mountPath }: Manifest) => mountPath === "/models");
      return volumes.find((volume: Manifest) => volume.name === name);
    };
    assert.deepEqual(await modelsOf(0), { name: "engine-models", emptyDir: {} });
    assert.equal((await modelsOf(1000)).persistentVolumeClaim.claimName, "hone-models");
  });

  const canChangeAccount = process.platform === "linux" && process.getuid?.() === 0;
  const asOthers = canChangeAccount ? false : "only root may start processes of the accounts of pods";
  test("the accounts of engine and trainer can replace each other's downloads", {
    skip: asOthers,
  }, async () => {
    await using folder = await temporaryFolder("models");
    const manifests = await manifestsOf(DEFAULTS);
    const [gateway, trainer] = [podOf(manifests, "inference-gateway"), podOf(manifests, "trainer")];
    const engine = gateway.containers.find(({ name }: Manifest) => name === "engine");
    const accounts = [accountOf(gateway, engine), accountOf(trainer, trainer.containers[0])] as const;
    // Owner and mode as a kubelet sets them on a volume with an fsGroup.
    const models = path.join(folder.path, "models");
    await mkdir(models);
    await chown(models, 0, gateway.securityContext.fsGroup);
    await chmod(models, 0o2775);
    await chmod(folder.path, 0o755);
    for (const [first, second] of [accounts, accounts.toReversed()] as const) {
      for (const [text, account] of [
        ["one", first],
        ["two", second],
      ] as const) {
        // The files that a client of the hub writes: folders, a blob, a link to it, and the name of the revision.
        const script = `set -e; cd "$1"; mkdir -p hub/refs hub/blobs hub/snapshots/$2; echo $2 > hub/refs/main; echo $2 > hub/blobs/b
          ln -sf ../../blobs/b hub/snapshots/$2/config.json; cat hub/snapshots/$2/config.json`;
        const options = { ...account, encoding: "utf8", timeout: 10_000, cwd: "/", env: {} } as const;
        const made = spawnSync("/bin/sh", ["-c", script, "sh", models, text], options);
        assert.deepEqual([made.status, made.stdout.trim(), made.stderr], [0, text, ""]);
      }
      assert.equal((await readFile(path.join(models, "hub/refs/main"), "utf8")).trim(), "two");
    }
  });

  test("the bus's streams and objects fit into its storage limit, and that into its volume", async () => {
    for (const profile of PROFILES) {
      const bus = (await manifestsOf(profile)).find(
        ({ kind, metadata }) => kind === "StatefulSet" && metadata.name === "hone-nats",
      );
      if (bus === undefined) continue;
      const size = bus.spec.volumeClaimTemplates[0].spec.resources.requests.storage;
      assert.match(size, /^\d+Gi$/);
      const config = ofKind(await manifestsOf(profile), "ConfigMap").find(
        ({ metadata }) => metadata.name === "hone-nats",
      );
      const [, gigabytes = ""] = /max_file_store: (\d+)GB/.exec(config?.data["nats.conf"]) ?? [];
      // nats-server reads GB as 2^30.
      assert.ok(Number(gigabytes) > STREAMS_GIB && Number(gigabytes) < Number.parseInt(size, 10), profile);
    }
  });

  test("only the trainer is given the size of EPISODES, in bytes", async () => {
    for (const [set, bytes] of [
      [[], EPISODES_MAX_BYTES],
      [["nats.episodesMaxSize=600MB"], 600 * 1024 ** 2],
    ] as const) {
      const manifests = await render(program, { set: [...set] });
      const found = SERVICES.flatMap((service) =>
        podOf(manifests, service)
          .containers.flatMap(({ env = [] }: Manifest) => env)
          .filter(({ name }: Manifest) => name === "HONE_EPISODES_MAX_BYTES")
          .map(({ value }: Manifest) => [service, value]),
      );
      assert.deepEqual(found, [["trainer", String(bytes)]]);
    }
  });
});

/** EPISODES 8, JOBS 1, EVENTS 1, RUNS and DEAD 0.25 each (libs/messaging/src/streams/streams.ts), and large payloads. */
const STREAMS_GIB =
  10.5 +
  PAYLOAD_WRITERS.reduce((sum, writer) => sum + payloadStoreBytes(writer, EPISODES_MAX_BYTES), 0) / 1024 ** 3;
