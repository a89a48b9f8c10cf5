/**
 * `npm run verify`: every check that is no test, each with its own line; a failed one shows what it printed.
 *
 *   format and lint   biome ci
 *   types             tsc
 *   proto             buf lint; buf breaking against the commit before; generated code is that of proto/
 *   boundaries        scripts/check-boundaries.ts
 *
 * All checks run, also after a failed one. The exit code is 0 only when all passed.
 */

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { scriptArguments } from "@hone/core";
import { GENERATIONS } from "./generations.ts";

/** What a check that could run found. */
type Outcome =
  | { readonly kind: "ok" }
  | { readonly kind: "failed"; readonly output: string }
  | { readonly kind: "skipped"; readonly why: string };

const ROOT = join(import.meta.dirname, "..");
const CHECK_TIMEOUT_MS = 300_000;

const CHECKS: Readonly<Record<string, () => Outcome>> = {
  "format and lint": () => run("biome", ["ci", "--colors=off", "."]),
  // By its path, as `typescript-6`, which dependency-cruiser uses, has a program called tsc as well.
  types: () => runAt("node", [join("node_modules", "typescript", "bin", "tsc"), "-p", "."]),
  // Apart, as it runs in browsers.
  "types of the page": () =>
    runAt("node", [join("node_modules", "typescript", "bin", "tsc"), "-p", "services/tracer/src/http/page"]),
  "proto lint": () => run("buf", ["lint"], "proto"),
  "proto breaking": checkBreaking,
  "proto generated": checkGenerated,
  boundaries: () => run("node", ["scripts/check-boundaries.ts"]),
};

scriptArguments(process, {
  usage: `npm run verify

Runs every check that is no test: ${Object.keys(CHECKS).join(", ")}.`,
});
let numFailed = 0;
for (const [name, check] of Object.entries(CHECKS)) {
  const startedAt = performance.now();
  const outcome = check();
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  if (outcome.kind === "skipped") console.log(`skipped ${name}: ${outcome.why}`);
  else console.log(`${outcome.kind === "ok" ? "ok  " : "FAIL"} ${name} (${seconds} s)`);
  if (outcome.kind === "failed") {
    numFailed++;
    console.log(outcome.output.replace(/^/gm, "       "));
  }
}
console.log(numFailed === 0 ? "verify: all checks passed" : `verify: ${numFailed} failed`);
process.exitCode = numFailed === 0 ? 0 : 1;

/** Runs a program of node_modules/.bin. */
function run(program: string, args: readonly string[], folder = "."): Outcome {
  return runAt(join(ROOT, "node_modules", ".bin", program), args, folder);
}

function runAt(command: string, args: readonly string[], folder = "."): Outcome {
  const ran = spawnSync(command, args, {
    cwd: join(ROOT, folder),
    encoding: "utf8",
    timeout: CHECK_TIMEOUT_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (ran.status === 0) return { kind: "ok" };
  const reason = ran.error?.message ?? `exit code ${ran.status}`;
  return { kind: "failed", output: `${ran.stdout ?? ""}${ran.stderr ?? ""}`.trim() || reason };
}

/** Wire compatibility with the commit before, where git and that commit's proto/ are at hand. */
function checkBreaking(): Outcome {
  const has = (object: string) => runAt("git", ["cat-file", "-e", object]).kind === "ok";
  if (!has("HEAD")) return { kind: "skipped", why: "not a git clone" };
  // With uncommitted changes they are what is checked, else the newest commit is.
  const isClean = runAt("git", ["diff", "--quiet", "HEAD", "--", "proto"]).kind === "ok";
  const base = isClean ? "HEAD~1" : "HEAD";
  if (!has(`${base}:proto/buf.yaml`)) return { kind: "skipped", why: `${base} has no proto/` };
  const folder = mkdtempSync(join(tmpdir(), "hone-proto-"));
  try {
    const archived = runAt("git", [
      "archive",
      "--format=tar",
      `--output=${join(folder, "proto.tar")}`,
      `${base}:proto`,
    ]);
    if (archived.kind !== "ok") return archived;
    return run("buf", ["breaking", "--against", join(folder, "proto.tar")], "proto");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What is generated in the tree is what proto/ gives. */
function checkGenerated(): Outcome {
  const folder = mkdtempSync(join(tmpdir(), "hone-generate-"));
  try {
    for (const { output, args } of GENERATIONS) {
      mkdirSync(dirname(join(folder, output)), { recursive: true });
      const generated = run("buf", args(folder), "proto");
      if (generated.kind !== "ok") return generated;
      const same = runAt("diff", ["-r", join(ROOT, output), join(folder, output)]);
      if (same.kind !== "failed") continue;
      return {
        kind: "failed",
        output: `${output} is not what proto/ gives: run npm run generate\n${same.output}`,
      };
    }
    return { kind: "ok" };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
