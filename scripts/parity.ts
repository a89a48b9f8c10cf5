/**
 * `npm run parity`: Hone's numbers against those of transformers and PyTorch, in float32.
 *
 *   npm run parity -- [--only smollm2,qwen3,...]
 *
 * It compares, for a real model and for a small random one of every family: logits, greedy continuations, losses and gradients of
 * plain, packed, masked and tree-shaped batches and of one with LoRA, AdamW on the same gradients, and logits of an export. Needs a Python
 * with torch and transformers, and the real model's folder, below $PEERS (by default ~/.cache/hone-peers):
 * `torch/bin/python` and `smollm2`. Where they are missing, it says so and does nothing.
 */

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { scriptArguments } from "@hone/core";

const ROOT = join(import.meta.dirname, "..");
const STEP_TIMEOUT_MS = 3_600_000;
const REFERENCE = join(ROOT, "scripts", "parity", "reference.py");
const REAL_MODEL = "smollm2";
/** What the real model's prompts are cut out of. */
const TEXT = join(ROOT, "docs", "run-file.md");

const { values } = scriptArguments(process, {
  usage: `npm run parity -- [--only NAMES]

  --only NAMES    compare only these models, with commas between them: ${REAL_MODEL}, qwen3, …

The variable PEERS names the folder with PyTorch and the real model (~/.cache/hone-peers).`,
  options: { only: { type: "string", default: "" } },
});
const only = values.only.split(",").filter(Boolean);
const peers = process.env.PEERS ?? join(homedir(), ".cache", "hone-peers");
const python = join(peers, "torch", "bin", "python");
const realModel = join(peers, REAL_MODEL);
const missing = [python, join(realModel, "config.json")].filter((file) => !existsSync(file));

if (missing.length > 0) {
  console.log("SKIPPED: nothing was compared, as these are missing (set PEERS to where they are):");
  for (const file of missing) console.log(`  ${file}`);
} else {
  const scratch = mkdtempSync(join(tmpdir(), "hone-parity-"));
  try {
    process.exitCode = compareAll(scratch) ? 0 : 1;
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

function compareAll(scratch: string): boolean {
  const families = join(scratch, "models");
  if (!run(python, [REFERENCE, "models", families])) return false;
  const models = [
    { name: REAL_MODEL, folder: realModel, text: [TEXT] },
    ...readdirSync(families).map((name) => ({ name, folder: join(families, name), text: [] })),
  ].filter(({ name }) => only.length === 0 || only.includes(name));
  const failed = models.filter(({ name, folder, text }) => {
    const out = join(scratch, "reference");
    mkdirSync(out);
    console.log(`\n${name}`);
    const isPassed = compare(folder, text, out, join(scratch, "exported"));
    for (const made of ["reference", "exported"])
      rmSync(join(scratch, made), { recursive: true, force: true });
    return !isPassed;
  });
  const names = failed.map(({ name }) => name).join(", ");
  console.log(failed.length === 0 ? `\nPASS: ${models.length} models` : `\nFAIL: ${names}`);
  return failed.length === 0 && models.length > 0;
}

/** @returns whether every step passed; the first one makes what the others compare with. */
function compare(model: string, text: readonly string[], out: string, exported: string): boolean {
  const train = join(ROOT, "libs", "train", "bench", "parity.ts");
  const generate = join(ROOT, "services", "inference-gateway", "bench", "parity.ts");
  if (!run(python, [REFERENCE, "write", model, out, ...text])) return false;
  const passed = [
    run(process.execPath, [generate, model, out]),
    run(process.execPath, [train, model, out, exported]),
    run(python, [REFERENCE, "check", exported, out]),
  ];
  return !passed.includes(false);
}

function run(command: string, args: readonly string[]): boolean {
  // The progress bars of a library would stand between the results.
  const env = { ...process.env, HF_HUB_OFFLINE: "1", TQDM_DISABLE: "1" };
  const { status, error } = spawnSync(command, args, { stdio: "inherit", timeout: STEP_TIMEOUT_MS, env });
  if (error !== undefined) console.log(`Cannot run ${command}: ${error.message}`);
  return status === 0;
}
