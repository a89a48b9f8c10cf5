/** What is generated from proto/, each a call of buf in that folder. */

import { join } from "node:path";

export interface Generation {
  /** What it writes, relative to the repository: a folder or a file. */
  readonly output: string;
  /** @param root the folder that `output` is written below. */
  args(root: string): string[];
}

const TRAINING = "services/trainer/torch/hone_fsdp/wire/training.binpb";
const RUN = "services/tracer/python/hone_sinks/run.binpb";

/** The descriptors from which a program in Python makes the messages of a file. */
function descriptors(output: string, file: string): Generation {
  return {
    output,
    args: (root) => [
      "build",
      "--as-file-descriptor-set",
      "--exclude-source-info",
      "--path",
      file,
      "--output",
      join(root, output),
    ],
  };
}

export const GENERATIONS: readonly Generation[] = [
  {
    output: "libs/proto-gen/src/gen",
    // Its template names the output relative to proto/.
    args: (root) => ["generate", "--output", join(root, "proto")],
  },
  descriptors(TRAINING, "hone/training/v1/training.proto"),
  descriptors(RUN, "hone/run/v1/run.proto"),
];
