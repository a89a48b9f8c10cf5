import { mkdtemp } from "node:fs/promises";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { saveCheckpoint } from "@hone/train";
import { EmbeddedEngine } from "../src/domain/embedded/embedded-engine.ts";

const spec = resolveModelSpec({
  vocabSize: 64,
  hiddenSize: 64,
  numLayers: 3,
  numHeads: 4,
  maxPositions: 1024,
});
const weights = initialiseWeights(spec, 1);
const folder = await mkdtemp("/tmp/hone-load-");
const { digest } = await saveCheckpoint(folder, { spec, weights, companions: {} });
const engine = new EmbeddedEngine();
for (let v = 1; v < 12; v++) {
  const t = performance.now();
  const c = process.cpuUsage();
  await engine.loadPolicy({ model: "m", version: v, folder, digest });
  const u = process.cpuUsage(c);
  console.log(
    v,
    (performance.now() - t).toFixed(1),
    "ms wall",
    ((u.user + u.system) / 1000).toFixed(1),
    "ms cpu",
  );
}
await engine.close();
