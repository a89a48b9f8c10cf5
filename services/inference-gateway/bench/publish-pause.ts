/**
 * Measures how long the generations of the embedded engine wait while a new version is published, for each choice of
 * `trainer.onNewVersion`: the longest time without a new token of any generation, when nothing is loaded and during a load.
 *
 *   node services/inference-gateway/bench/publish-pause.ts [--shape example|135m] [--sessions 128] [--new 400] [--prompt 200] [--loads 8]
 *
 * The window of a load lasts until 300 ms after its end, so that computing the contexts again is in it.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { saveCheckpoint } from "@hone/checkpoint";
import { Random } from "@hone/core";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { OnNewVersion } from "@hone/rl";
import { EmbeddedEngine } from "../src/embedded/embedded-engine.ts";
import { SHAPES } from "./shapes.ts";

const { values } = parseArgs({
  options: {
    shape: { type: "string", default: "example" },
    sessions: { type: "string", default: "128" },
    new: { type: "string", default: "400" },
    prompt: { type: "string", default: "200" },
    loads: { type: "string", default: "8" },
  },
});

const CACHE_BYTES = 2 ** 30;
const DEADLINE_MS = 600_000;
/** Between two loads, and as long without any. */
const QUIET_MS = 300;
const spec = resolveModelSpec(SHAPES[values.shape === "135m" ? "135m" : "example"]);
const random = new Random(1);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

for (const onNewVersion of Object.values(OnNewVersion)) {
  const folder = await mkdtemp(path.join(tmpdir(), "hone-bench-"));
  const { digest } = await saveCheckpoint(folder, {
    spec,
    weights: initialiseWeights(spec, 1),
    companions: {},
  });
  const engine = new EmbeddedEngine({ maxCacheBytes: CACHE_BYTES });
  let version = 1;
  const load = () => engine.loadPolicy({ model: "m", version: version++, folder, digest });
  await load();
  let isOver = false;
  let lastAt = 0;
  let longest = 0;
  const onTokens = () => {
    const now = performance.now();
    longest = Math.max(longest, now - lastAt);
    lastAt = now;
  };
  const sessions = Array.from({ length: Number(values.sessions) }, async (_, session) => {
    for (let call = 0; !isOver; call++) {
      const sampling = {
        temperature: 1,
        topP: 1,
        topK: 0,
        maxNewTokens: Number(values.new),
        stopTokenIds: [],
      };
      const promptIds = Array.from({ length: Number(values.prompt) }, () => random.nextInt(spec.vocabSize));
      const names = { id: `${session}.${call}`, model: "m", sessionId: "", groupId: "" };
      const versionRange = { lowest: 0, highest: 1_000_000 };
      const request = { ...names, promptIds, sampling, seed: call, versionRange, onNewVersion };
      await engine.generate({ ...request, deadlineMs: DEADLINE_MS }, { onTokens });
    }
  });
  const longestDuring = async (work: () => Promise<unknown>) => {
    longest = 0;
    lastAt = performance.now();
    await work();
    return longest;
  };
  await pause(2_000);
  const quiet: number[] = [];
  const loading: number[] = [];
  for (let i = 0; i < Number(values.loads); i++) {
    quiet.push(await longestDuring(() => pause(QUIET_MS)));
    const during = async () => {
      await load();
      await pause(QUIET_MS);
    };
    loading.push(await longestDuring(during));
  }
  isOver = true;
  await Promise.all(sessions);
  await engine.close();
  await rm(folder, { recursive: true });
  const shown = (all: readonly number[]) => all.map((ms) => ms.toFixed(0)).join(", ");
  console.log(
    `${onNewVersion}: longest wait for a token, ms: without a load ${shown(quiet)}; with one ${shown(loading)}`,
  );
}
