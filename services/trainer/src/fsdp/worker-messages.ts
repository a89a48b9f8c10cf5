/** Turns Hone's objects into the messages of proto/hone/training/v1. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ElementType,
  encodeHeader,
  type MergedPlace,
  type TensorPlace,
  type WeightFile,
} from "@hone/checkpoint";
import {
  type AdaptedModel,
  hasBias,
  LORA_TARGETS,
  listTrained,
  type ModelSpec,
  rotaryFactor,
  rotaryFrequencies,
} from "@hone/nn";
import {
  type AdamWSchema,
  type AdapterShapeSchema,
  type LossTermSchema,
  type MicrobatchSchema,
  type ModelShapeSchema,
  type Setup,
  SetupSchema,
  type StoredTensorSchema,
  type WeightFileSchema,
  ElementType as WireType,
} from "@hone/proto-gen/training";
import type { LossTerm } from "@hone/rl";
import type { Pass } from "@hone/train";
import type { Minibatch } from "../domain/step/training-engine.ts";
import type { FsdpEngineConfig } from "./fsdp-config.ts";

const TYPES: Readonly<Record<ElementType, WireType>> = {
  F32: WireType.FLOAT32,
  F16: WireType.FLOAT16,
  BF16: WireType.BFLOAT16,
};

/** The call that makes the model. */
export function setupOf(config: FsdpEngineConfig, model: AdaptedModel): Setup {
  return create(SetupSchema, {
    model: modelShape(model.spec),
    ...(model.lora === undefined ? {} : { adapters: adapterShape(model.lora) }),
    trained: listTrained(model).map(({ name, kind }) => ({
      name,
      isDecayed: kind !== "norm" && kind !== "bias",
    })),
    computeType: config.computeType === "float32" ? WireType.FLOAT32 : WireType.BFLOAT16,
    recomputesLayers: config.recomputesLayers,
    offloadsToHost: config.offloadsToHost,
  });
}

function modelShape(spec: ModelSpec): MessageInitShape<typeof ModelShapeSchema> {
  const rope = { theta: spec.ropeTheta, scaling: spec.ropeScaling };
  return {
    vocabSize: spec.vocabSize,
    hiddenSize: spec.hiddenSize,
    numLayers: spec.numLayers,
    numHeads: spec.numHeads,
    numKeyValueHeads: spec.numKeyValueHeads,
    headDim: spec.headDim,
    intermediateSize: spec.intermediateSize,
    biasedProjections: Object.values(LORA_TARGETS).filter((part) => hasBias(spec, part)),
    hasQkNorm: spec.hasQkNorm,
    rmsNormEps: spec.rmsNormEps,
    isTied: spec.isTied,
    rotaryFrequencies: rotaryFrequencies(rope, spec.headDim),
    rotaryFactor: rotaryFactor(rope),
    hasValueHead: spec.head === "value",
  };
}

function adapterShape(lora: NonNullable<AdaptedModel["lora"]>): MessageInitShape<typeof AdapterShapeSchema> {
  return {
    rank: lora.rank,
    alpha: lora.alpha,
    projections: lora.targets.map((target) => LORA_TARGETS[target]),
  };
}

export function storedTensor(place: MergedPlace): MessageInitShape<typeof StoredTensorSchema> {
  const stored = ({ name, file, begin, type, shape }: TensorPlace) => ({
    name,
    file,
    offset: BigInt(begin),
    type: TYPES[type],
    shape: [...shape],
  });
  if (place.merged === undefined) return stored(place);
  const { a, b, factor } = place.merged;
  return { ...stored(place), merged: { a: stored(a), b: stored(b), factor } };
}

export function weightFile({
  path,
  tensors,
  metadata,
}: WeightFile): MessageInitShape<typeof WeightFileSchema> {
  return {
    path,
    head: encodeHeader(tensors, metadata),
    tensors: tensors.map(({ parameter, type }) => ({ name: parameter, type: TYPES[type] })),
  };
}

export function microbatch({ batch, objective }: Pass): MessageInitShape<typeof MicrobatchSchema> {
  return {
    rowCount: batch.rowCount,
    rowTokens: batch.rowTokens,
    tokenIds: bytesOf(batch.tokenIds),
    positionIds: bytesOf(batch.positionIds),
    visibleEnd: bytesOf(batch.visibleEnd),
    positions: bytesOf(batch.positions),
    entryPosition: bytesOf(batch.entryPosition),
    entryTarget: bytesOf(batch.entryTarget),
    ...(objective === undefined
      ? {}
      : {
          numbers: {
            inputs: Object.fromEntries(
              Object.entries(objective.inputs).map(([name, values]) => [name, bytesOf(values)]),
            ),
            weight: bytesOf(objective.weight),
            entropyWeight: bytesOf(objective.entropyWeight),
          },
        }),
  };
}

export function lossTerm({ name, constants, expression }: LossTerm): MessageInitShape<typeof LossTermSchema> {
  return {
    name,
    constants: { ...constants },
    ...(expression !== undefined && { expression: JSON.stringify(expression) }),
  };
}

export function adamWMessage(options: Minibatch["optimizer"]): MessageInitShape<typeof AdamWSchema> {
  const { learningRate, beta1, beta2, epsilon, weightDecay } = options;
  return { learningRate, beta1, beta2, epsilon, weightDecay };
}

/** Numbers as a message carries them. */
export function floatsOf(bytes: Uint8Array): Float32Array {
  // A copy: the bytes of a message begin anywhere.
  return new Float32Array(new Uint8Array(bytes).buffer);
}

function bytesOf(values: Int32Array | Float32Array | undefined): Uint8Array {
  return values === undefined
    ? new Uint8Array(0)
    : new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}
