/** Tests of what `helm install` prints: commands must name existing objects. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { subjects } from "@hone/messaging";
import { CHART, helm, type Manifest, NAMESPACE, RELEASE, valuesOf } from "./helm.ts";
import { DEFAULTS, manifestsOf, objectOf, optionsOf, PROFILES, podsOf, program, skip } from "./profiles.ts";

async function notesOf(profile: string): Promise<string> {
  const said = await helm(program, [
    "install",
    RELEASE,
    CHART,
    "--dry-run=client",
    "--namespace",
    NAMESPACE,
    ...valuesOf(optionsOf(profile)),
  ]);
  const [, notes] = said.split(/^NOTES:$/m);
  assert.ok(notes !== undefined, said.slice(0, 500));
  return notes;
}

describe("the notes", { skip }, () => {
  for (const profile of PROFILES) {
    test(`of ${profile} say how to publish the first run and where to look`, async () => {
      const [notes, manifests] = [await notesOf(profile), await manifestsOf(profile)];
      assert.match(notes, new RegExp(`nats .*pub ${subjects.runRequest().replaceAll(".", "\\.")} `));
      const forwards = [...notes.matchAll(/port-forward service\/(\S+) \d+:(\d+)/g)];
      assert.ok(forwards.length >= 1);
      for (const [, service = "", port] of forwards) {
        const { ports } = objectOf(manifests, "Service", service).spec;
        assert.ok(
          ports.some((each: Manifest) => each.port === Number(port)),
          `${service}:${port}`,
        );
      }
      const hasTest = podsOf(manifests).some(({ component }) => component === "test");
      assert.equal(/helm -n \S+ test hone/.test(notes), hasTest);
    });
  }

  test("say which engines a release has, and how to use others", async () => {
    const [defaults, cpu] = [await notesOf(DEFAULTS), await notesOf("cpu")];
    assert.match(defaults, /vllm with Qwen\/Qwen3-0\.6B, in 1 pod\(s\) of 1 GPU/);
    assert.match(defaults, /FSDP2, in 1 trainer\(s\) of 1 GPU/);
    assert.match(defaults, /without GPUs[\s\S]*--values helm\/hone\/ci\/cpu\.yaml/);
    assert.match(
      defaults,
      /`model: \{ path: Qwen\/Qwen3-0\.6B \}`[\s\S]*`trainer: \{ engine: \{ kind: fsdp2 \} \}`/,
    );
    assert.match(cpu, /Generates: the ONNX engine on CPUs[\s\S]*Trains: +the ONNX engine on CPUs/);
    assert.match(cpu, /leave out helm\/hone\/ci\/cpu\.yaml/);
    assert.match(await notesOf("multi-node"), /FSDP2, in 1 trainer\(s\) of 16 GPU/);
  });

  test("name the Secret and the key of the user that publishes", async () => {
    const [, secret = "", key = ""] =
      /get secret (\S+) -o jsonpath='\{\.data\.(\w+)\}'/.exec(await notesOf("cpu")) ?? [];
    assert.ok(objectOf(await manifestsOf("cpu"), "Secret", secret).stringData[key]);
    assert.match(await notesOf("cpu"), new RegExp(`NATS_USER=${key}`));
  });
});
