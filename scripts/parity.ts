/**
 * `npm run parity`: Hone's numbers against those of transformers, in float32, on a real model.
 *
 * Needs a Python with torch and transformers, and the model's folder, below $PEERS (by default ~/.cache/hone-peers):
 * `torch/bin/python` and `smollm2`. Where they are missing, it says so and does nothing.
 */

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const STEP_TIMEOUT_MS = 3_600_000;

const peers = process.env.PEERS ?? join(homedir(), ".cache", "hone-peers");
const python = join(peers, "torch", "bin", "python");
const model = join(peers, "smollm2");
const missing = [python, join(model, "config.json")].filter((file) => !existsSync(file));

if (missing.length > 0) {
  console.log("SKIPPED: nothing was compared, as these are missing (set PEERS to where they are):");
  for (const file of missing) console.log(`  ${file}`);
} else {
  const scratch = mkdtempSync(join(tmpdir(), "hone-parity-"));
  try {
    process.exitCode = compare(scratch) ? 0 : 1;
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

/** @returns whether every step passed; the first one makes what the others compare with. */
function compare(scratch: string): boolean {
  const reference = join(ROOT, "scripts", "parity", "reference.py");
  const text = join(ROOT, "docs", "run-file.md");
  const exported = join(scratch, "exported");
  const train = join(ROOT, "libs", "train", "bench", "parity.ts");
  const generate = join(ROOT, "services", "inference-gateway", "bench", "parity.ts");
  if (!run(python, [reference, "write", model, text, scratch])) return false;
  const passed = [
    run(process.execPath, [generate, model, scratch]),
    run(process.execPath, [train, model, scratch, exported]),
    run(python, [reference, "check", exported, scratch]),
  ];
  return !passed.includes(false);
}

function run(command: string, args: readonly string[]): boolean {
  const { status, error } = spawnSync(command, args, { stdio: "inherit", timeout: STEP_TIMEOUT_MS });
  if (error !== undefined) console.log(`Cannot run ${command}: ${error.message}`);
  return status === 0;
}
