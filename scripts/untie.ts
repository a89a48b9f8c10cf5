/**
 * `npm run untie -- MODEL FOLDER`: a copy of a checkpoint whose head is a tensor of its own, with the embedding's numbers.
 *
 * It computes the same as the model until it is trained, which changes head and embedding separately. It is for servers
 * that do not take a new head where that is the embedding: vLLM's CPU build (docs/engines.md).
 *
 * Numbers are copied as they are stored, piece by piece: shards and types stay.
 */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { resolve } from "node:path";
import {
  type CheckpointOrigin,
  ElementType,
  encodeHeader,
  inspectModel,
  locateMerged,
  saveCheckpointWith,
  type TensorPlace,
  type WeightFile,
} from "@hone/checkpoint";
import { scriptArguments } from "@hone/core";
import { EMBEDDING, HEAD, tensorNameOf } from "@hone/nn";

/** Bytes read at once. */
const CHUNK_BYTES = 4 * 2 ** 20;

const { positionals } = scriptArguments(process, {
  usage:
    "npm run untie -- MODEL FOLDER\n\nWrites a copy of the model in the folder MODEL, with a head of its own, to FOLDER.",
  positionals: ["MODEL", "FOLDER"],
});
// npm starts its programs in the project folder, and passes on the folder in which it was called.
const [source = "", target = ""] = positionals.map((each) => resolve(process.env.INIT_CWD ?? "", each));
try {
  const bytes = await untie(source, target);
  console.log(`${target}: ${(bytes / 2 ** 20).toFixed(0)} MiB, its head is ${HEAD}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

/** @returns the size of all files written. */
async function untie(model: string, folder: string): Promise<number> {
  const present = await readdir(folder).catch(() => []);
  if (present.length > 0) {
    throw new Error(`${folder} must be new or empty, and holds ${present.length} files`);
  }
  const { spec, companions, origin } = await inspectModel(model);
  if (!spec.isTied) {
    throw new Error(
      `${model} has a head of its own already; only a model whose head is its embedding (tie_word_embeddings) can be untied`,
    );
  }
  const places = new Map((await locateMerged(model, spec)).map((place) => [place.name, place]));
  const untied = {
    spec: { ...spec, isTied: false },
    companions,
    origin: withHead(origin, tensorNameOf(spec, EMBEDDING), tensorNameOf(spec, HEAD)),
  };
  const { bytes } = await saveCheckpointWith(folder, untied, async (files) => {
    const written: { digest: string; bytes: number }[] = [];
    for (const file of files) written.push(await copyTensors(file, places));
    return written;
  });
  return bytes;
}

/** The head comes last in the file that holds the embedding, stored as that is. */
function withHead({ config, layout }: CheckpointOrigin, embedding: string, head: string): CheckpointOrigin {
  const shards = layout.shards.map((shard) => {
    const type = shard.tensors.find(({ name }) => name === embedding)?.type;
    return type === undefined ? shard : { ...shard, tensors: [...shard.tensors, { name: head, type }] };
  });
  return { config: { ...config, tie_word_embeddings: false }, layout: { shards } };
}

async function copyTensors(
  { path, tensors, metadata }: WeightFile,
  places: ReadonlyMap<string, TensorPlace>,
): Promise<{ digest: string; bytes: number }> {
  const hash = createHash("sha256");
  let bytes = 0;
  await using file = await open(path, "wx");
  const write = async (chunk: Uint8Array) => {
    hash.update(chunk);
    await file.appendFile(chunk);
    bytes += chunk.length;
  };
  await write(encodeHeader(tensors, metadata));
  for (const { parameter } of tensors) {
    const place = places.get(parameter === HEAD ? EMBEDDING : parameter)!;
    const range = { start: place.begin, end: place.begin + bytesOf(place) - 1, highWaterMark: CHUNK_BYTES };
    for await (const chunk of createReadStream(place.file, range)) await write(chunk as Buffer);
  }
  return { digest: hash.digest("hex"), bytes };
}

function bytesOf({ shape, type }: TensorPlace): number {
  return shape.reduce((product, size) => product * size, type === ElementType.F32 ? 4 : 2);
}
