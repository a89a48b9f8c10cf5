/** What stays when a release goes, and whose volumes it uses. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Manifest, render } from "./helm.ts";
import { manifestsOf, PROFILES, podsOf, program, skip } from "./profiles.ts";

const KEEP = "helm.sh/resource-policy";

const ofKind = (manifests: readonly Manifest[], kind: string) =>
  manifests.filter((each) => each.kind === kind);
const withClaims = (manifests: readonly Manifest[]) =>
  ofKind(manifests, "StatefulSet").filter(({ spec }) => spec.volumeClaimTemplates !== undefined);

/** Component -> claims that its pods mount, by name. */
function claimsMounted(manifests: readonly Manifest[]): Map<string, string[]> {
  return new Map(
    podsOf(manifests).map(({ component, spec }) => [
      component,
      (spec.volumes ?? []).flatMap((volume: Manifest) => volume.persistentVolumeClaim?.claimName ?? []),
    ]),
  );
}

describe("helm uninstall", { skip }, () => {
  for (const profile of PROFILES) {
    test(`of ${profile} leaves every volume and every password`, async () => {
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

  test("takes volumes with it where storage.keep is false, and no password", async () => {
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
  test("weights, models and files lie on claims that exist where values name them, and none is made", async () => {
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

  test("without a claim for models each pod has a cache of its own", async () => {
    const manifests = await render(program, { set: ["storage.models.size="] });
    assert.deepEqual(claimsMounted(manifests).get("trainer"), ["hone-state"]);
    const { spec } = podsOf(manifests).find(({ component }) => component === "trainer") ?? assert.fail();
    const models = spec.volumes.find(({ name }: Manifest) => name === "models");
    assert.deepEqual(models.emptyDir, {});
  });

  test("only those that write weights may write to the volume of states", async () => {
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

  test("the bus's streams and objects fit on its disk, and that on its volume", async () => {
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
});

/** EPISODES 8, JOBS 1, EVENTS 1, RUNS and DEAD 0.25 each (libs/messaging/src/streams.ts). */
const STREAMS_GIB = 10.5;
