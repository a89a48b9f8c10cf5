/** What `helm install` prints: each command in it names what is there. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { subjects } from "@hone/messaging";
import { CHART, helm, type Manifest, NAMESPACE, RELEASE, valuesOf } from "./helm.ts";
import { manifestsOf, objectOf, PROFILES, podsOf, program, skip } from "./profiles.ts";

async function notesOf(profile: string): Promise<string> {
  const said = await helm(program, [
    "install",
    RELEASE,
    CHART,
    "--dry-run=client",
    "--namespace",
    NAMESPACE,
    ...valuesOf({ profile }),
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

  test("name the Secret and the key of the user that publishes", async () => {
    const [, secret = "", key = ""] =
      /get secret (\S+) -o jsonpath='\{\.data\.(\w+)\}'/.exec(await notesOf("cpu")) ?? [];
    assert.ok(objectOf(await manifestsOf("cpu"), "Secret", secret).stringData[key]);
    assert.match(await notesOf("cpu"), new RegExp(`NATS_USER=${key}`));
  });
});
