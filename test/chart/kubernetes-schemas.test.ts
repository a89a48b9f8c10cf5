/**
 * Validates each profile with the schemas of Kubernetes, which come with the PyPI package `kubernetes-validate`:
 *
 *   python3 -m venv .venv && .venv/bin/pip install kubernetes-validate==1.37.0
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { describe, test } from "node:test";
import { findHelm, render } from "./helm.ts";
import { optionsOf, PROFILES } from "./profiles.ts";

const VERSIONS = ["1.33", "1.34", "1.35", "1.36", "1.37"];
const TIMEOUT_MS = 120_000;
const REPOSITORY = path.resolve(import.meta.dirname, "..", "..");
const PYTHONS = [path.join(REPOSITORY, ".venv", "bin", "python"), "python3"];

const helm = await findHelm();
const python = PYTHONS.find(
  (each) => spawnSync(each, ["-c", "import kubernetes_validate"], { timeout: TIMEOUT_MS }).status === 0,
);

describe("the rendered manifests", () => {
  for (const profile of PROFILES) {
    test(`of ${profile} are valid for Kubernetes ${VERSIONS[0]} to ${VERSIONS.at(-1)}`, async (t) => {
      if (helm.kind === "missing") return t.skip(helm.why);
      if (python === undefined) {
        return t.skip(
          "no Python has kubernetes-validate: see the head of this file for the line that installs it",
        );
      }
      const manifests = await render(helm.program, optionsOf(profile));
      assert.ok(manifests.length > 20);
      const validated = spawnSync(python, [path.join(import.meta.dirname, "validate.py"), ...VERSIONS], {
        input: manifests.map((manifest) => JSON.stringify(manifest)).join("\n"),
        encoding: "utf8",
        timeout: TIMEOUT_MS,
      });
      assert.equal(validated.status, 0, validated.stdout + validated.stderr);
    });
  }
});
