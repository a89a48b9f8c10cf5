/** The models that the benchmarks of the engine compute: that of the first example, and the shape of SmolLM2-135M. */
export const SHAPES = {
  example: {
    vocabSize: 64,
    hiddenSize: 64,
    numLayers: 4,
    numHeads: 4,
    numKeyValueHeads: 2,
    intermediateSize: 192,
    maxPositions: 1_024,
  },
  "135m": {
    vocabSize: 49_152,
    hiddenSize: 576,
    numLayers: 30,
    numHeads: 9,
    numKeyValueHeads: 3,
    intermediateSize: 1_536,
    maxPositions: 1_024,
  },
} as const;
