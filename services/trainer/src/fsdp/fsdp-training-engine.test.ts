import { after } from "node:test";
import { EXACT, GroupPool, torchHost, torchPython } from "../testing/torch-host.ts";
import { testTrainingEngine } from "../testing/training-engine-suite.ts";
import { OPTIMIZER_FOLDER } from "./fsdp-files.ts";
import { FsdpTrainingEngine } from "./fsdp-training-engine.ts";

const { python, skip } = torchPython(process.env);
const host = torchHost(python, process.env);
const groups = new GroupPool();
after(() => groups.close());

testTrainingEngine({
  name: "FsdpTrainingEngine",
  create: (config) => new FsdpTrainingEngine({ ...config, ...EXACT, worldSize: 1 }, host, groups.start),
  optimizer: OPTIMIZER_FOLDER,
  isOptimizerOneFile: false,
  skip,
});
