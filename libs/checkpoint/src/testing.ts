/** Reads every tensor of a file, for tests. Development only. */
import { SafeTensorsReader } from "./safetensors/reader.ts";

export async function readTensors(path: string): Promise<Map<string, Float32Array>> {
  await using reader = await SafeTensorsReader.open(path);
  const tensors = new Map<string, Float32Array>();
  await reader.readInto(({ name, shape }) => {
    const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
    tensors.set(name, values);
    return values;
  });
  return tensors;
}
