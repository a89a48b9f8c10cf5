/** Tests of the pod of `helm test` in each profile. `npm run test:chart` runs it on a release of the profile `cpu`. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { resolveRunConfig } from "@hone/config";
import { type Manifest, render } from "./helm.ts";
import {
  containersOf,
  manifestsOf,
  objectOf,
  optionsOf,
  PROFILES,
  podOf,
  program,
  SERVICES,
  skip,
} from "./profiles.ts";

/** Services from which the pod expects an answer. */
function expectedOf(manifests: readonly Manifest[]): string[] {
  const [{ command }] = containersOf(podOf(manifests, "test")) as [Manifest];
  assert.ok(command.includes("--dry-run"), command.join(" "));
  const [, names = ""] = /^--services=(.*)$/.exec(command.at(-1)) ?? [];
  return names.split(",");
}

describe("helm test", { skip }, () => {
  for (const profile of PROFILES) {
    test(`of ${profile} asks every service about a run on the release's engines`, async () => {
      const manifests = await manifestsOf(profile);
      const pod = podOf(manifests, "test");
      assert.deepEqual(expectedOf(manifests).sort(), [...SERVICES].sort());
      assert.equal(pod.restartPolicy, "Never");
      assert.ok(pod.activeDeadlineSeconds > 0);
      const secret = pod.volumes.find(({ name }: Manifest) => name === "credentials").secret;
      assert.equal(secret.secretName, "hone-client-credentials");

      const text = objectOf(manifests, "ConfigMap", "hone-test").data["run.json"];
      const run = resolveRunConfig(JSON.parse(text));
      const gateway = podOf(manifests, "inference-gateway").containers;
      const server = gateway.find(({ name }: Manifest) => name === "engine");
      const trainer = podOf(manifests, "trainer").containers[0];
      const hasTorch = trainer.env.some(({ name }: Manifest) => name === "HONE_TRAINER_PYTHON");
      assert.equal(run.trainer?.engine.kind, hasTorch ? "fsdp2" : "onnx");
      if (server === undefined) assert.ok("init" in run.model);
      else
        assert.ok(
          "path" in run.model &&
            server.args.some((each: string) => each.endsWith(String("path" in run.model && run.model.path))),
        );

      const publishes = containersOf(pod).some(({ command }) => !command.includes("--dry-run"));
      assert.equal(publishes, server === undefined && !hasTorch, "GPUs are not spent by a test");
    });
  }

  test("expects no answer from services without pods: those that a restore leaves out, and those that KEDA scaled to zero", async () => {
    const without = async (...set: string[]) => {
      const expected = expectedOf(await render(program, { ...optionsOf("cpu"), set }));
      return SERVICES.filter((name) => !expected.includes(name));
    };
    assert.deepEqual(await without("trainer.replicas=0", "tracer.replicas=0"), ["trainer", "tracer"]);
    const keda = ["agentRollout.keda.enabled=true", "agentRollout.keda.minReplicas"] as const;
    assert.deepEqual(await without(keda[0], `${keda[1]}=0`), ["agent-rollout"]);
    assert.deepEqual(await without(keda[0], `${keda[1]}=1`), []);
  });
});
