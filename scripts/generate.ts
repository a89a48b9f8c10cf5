/**
 * `npm run generate`: writes what is generated from proto/ anew: libs/proto-gen/src/gen, and the descriptors that the
 * PyTorch workers make their messages of. And the rights on the bus, for the chart.
 */

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { scriptArguments } from "@hone/core";
import { busRights } from "@hone/messaging";
import { GENERATIONS } from "./generations.ts";

scriptArguments(process, {
  usage:
    "npm run generate\n\nWrites anew what is generated from proto/, and the rights on the bus for the chart.",
});
const root = join(import.meta.dirname, "..");
for (const { args } of GENERATIONS) {
  const ran = spawnSync(join(root, "node_modules", ".bin", "buf"), args(root), {
    cwd: join(root, "proto"),
    stdio: "inherit",
    timeout: 60_000,
  });
  if (ran.error !== undefined)
    console.error(`Cannot run buf as npm must have installed it: ${ran.error.message}`);
  process.exitCode ||= ran.status ?? 1;
}
writeFileSync(
  join(root, "helm/hone/files/bus-rights.json"),
  `${JSON.stringify(busRights(), undefined, 2)}\n`,
);
