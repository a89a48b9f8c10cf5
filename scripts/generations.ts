/** What is generated from proto/, each a call of buf in that folder. */

import { join } from "node:path";

export interface Generation {
  /** What it writes, relative to the repository: a folder or a file. */
  readonly output: string;
  /** @param root the folder that `output` is written below. */
  args(root: string): string[];
}

const DESCRIPTORS = "services/trainer/torch/hone_fsdp/wire/training.binpb";

export const GENERATIONS: readonly Generation[] = [
  {
    output: "libs/proto-gen/src/gen",
    // Its template names the output relative to proto/.
    args: (root) => ["generate", "--output", join(root, "proto")],
  },
  {
    output: DESCRIPTORS,
    args: (root) => [
      "build",
      "--as-file-descriptor-set",
      "--exclude-source-info",
      "--path",
      "hone/training/v1/training.proto",
      "--output",
      join(root, DESCRIPTORS),
    ],
  },
];
