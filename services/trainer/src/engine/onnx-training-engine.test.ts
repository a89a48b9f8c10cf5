import { testTrainingEngine } from "../testing/training-engine-suite.ts";
import { OnnxTrainingEngine } from "./onnx-training-engine.ts";

testTrainingEngine({
  name: "OnnxTrainingEngine",
  create: (config) => new OnnxTrainingEngine({ ...config, threads: 2 }),
  optimizer: "optimizer.safetensors",
  isOptimizerOneFile: true,
});
