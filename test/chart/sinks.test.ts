/** Tests of the sinks of metrics in the chart: what they are told, what they may reach, and that they are absent unless wanted. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Manifest, render } from "./helm.ts";
import { manifestsOf, objectOf, podOf, podsOf, program, skip } from "./profiles.ts";

const PROFILE = "observability";

describe("sinks of metrics", { skip }, () => {
  const envOf = (spec: Manifest, container: string): Record<string, Manifest> => {
    const found = spec.containers.find(({ name }: Manifest) => name === container);
    return Object.fromEntries((found?.env ?? []).map((each: Manifest) => [each.name, each]));
  };

  test("are absent by default, with their user of the bus", async () => {
    const manifests = await manifestsOf("cpu");
    assert.ok(!podsOf(manifests).some(({ component }) => component === "sinks"));
    assert.ok(!manifests.some(({ metadata }) => metadata.name.includes("sinks")));
    assert.ok(!("sinks" in objectOf(manifests, "Secret", "hone-nats-users").stringData));
    assert.doesNotMatch(objectOf(manifests, "ConfigMap", "hone-nats").data["nats.conf"], /sinks/);
    const names = Object.keys(envOf(podOf(manifests, "tracer"), "tracer"));
    assert.deepEqual(
      names.filter((name) => /MLFLOW|TENSORBOARD|OTLP_METRICS|PRICE|CURRENCY/.test(name)),
      [],
    );
  });

  test("the tracer gets addresses and prices from values, keys from Secrets, and TensorBoard's volume", async () => {
    const pod = podOf(await manifestsOf(PROFILE), "tracer");
    const env = envOf(pod, "tracer");
    assert.equal(env.HONE_MLFLOW_URL?.value, "http://mlflow.mlflow:5000");
    assert.deepEqual(
      [env.HONE_TRACER_PRICE_PER_HOUR?.value, env.HONE_TRACER_CURRENCY?.value],
      ["2.40", "EUR"],
    );
    assert.equal(env.HONE_MLFLOW_EXPERIMENT?.value, "hone");
    assert.equal(env.HONE_MLFLOW_CHECKPOINTS?.value, "last");
    assert.deepEqual(env.HONE_MLFLOW_TOKEN?.valueFrom.secretKeyRef, { name: "mlflow", key: "token" });
    assert.equal(env.HONE_OTLP_METRICS_URL?.value, "http://collector.observability:4318");
    assert.equal(env.HONE_OTLP_METRICS_HEADERS?.valueFrom.secretKeyRef.name, "collector");
    const { mountPath } = pod.containers[0].volumeMounts.find(({ name }: Manifest) => name === "tensorboard");
    assert.equal(env.HONE_TENSORBOARD_DIR?.value, mountPath);
    const volume = pod.volumes.find(({ name }: Manifest) => name === "tensorboard");
    assert.equal(volume.persistentVolumeClaim.claimName, "tensorboard");
  });

  test("the program in Python is one pod with a volume, its own user of the bus, and no other Secret of Hone's", async () => {
    const manifests = await manifestsOf(PROFILE);
    const { spec } = objectOf(manifests, "Deployment", "hone-sinks");
    assert.equal(spec.replicas, 1);
    assert.equal(spec.strategy.type, "Recreate");
    const pod = podOf(manifests, "sinks");
    const env = envOf(pod, "sinks");
    assert.equal(env.HONE_SINKS?.value, "wandb,swanlab,trackio");
    assert.equal(env.WANDB_API_KEY?.valueFrom.secretKeyRef.name, "wandb");
    const secrets = pod.volumes.flatMap(({ secret }: Manifest) => secret?.secretName ?? []);
    assert.deepEqual(secrets, ["hone-sinks-credentials"]);
    const { stringData } = objectOf(manifests, "Secret", "hone-sinks-credentials");
    assert.deepEqual(Object.keys(stringData), ["nats-url"]);
    assert.match(stringData["nats-url"], /^nats:\/\/sinks:p\w{31}@hone-nats\./);
    assert.match(objectOf(manifests, "ConfigMap", "hone-nats").data["nats.conf"], /user: "sinks"/);
    const mounted = pod.volumes.find(({ name }: Manifest) => name === "state").persistentVolumeClaim
      .claimName;
    objectOf(manifests, "PersistentVolumeClaim", mounted);
  });

  test("the program in Python reaches the bus and what values name, and nobody reaches it", async () => {
    const { spec } = objectOf(await manifestsOf(PROFILE), "NetworkPolicy", "hone-sinks");
    assert.deepEqual(spec.ingress, []);
    const [toNats, toInternet, ...others] = spec.egress;
    assert.equal(toNats.to[0].podSelector.matchLabels["app.kubernetes.io/component"], "nats");
    assert.equal(toInternet.ports[0].port, 443);
    assert.deepEqual(others, []);
  });

  test("refuses a system that it does not know, and a quote in the name of an experiment", async () => {
    const refused = (set: string) => render(program, { set: [set] });
    await assert.rejects(refused("sinks.backends={comet}"), /\/sinks\/backends\/0'.*wandb.*swanlab.*trackio/);
    await assert.rejects(
      refused("tracer.sinks.mlflow.experiment=a'b"),
      /\/tracer\/sinks\/mlflow\/experiment/,
    );
  });
});
