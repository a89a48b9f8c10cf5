/**
 * `npm run generate`: writes again what is generated. From proto/: libs/proto-gen/src/gen, and the descriptors from which the
 * PyTorch workers make their messages. For the chart: the accounts of the bus, the roles of the database, and the options in its
 * README.
 */

import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scriptArguments } from "@hone/core";
import { chartRolesScript } from "@hone/storage";
import { withOptions } from "./chart-options.ts";
import { GENERATIONS } from "./generations.ts";

scriptArguments(process, {
  usage:
    "npm run generate\n\nWrites anew what is generated from proto/, and for the chart the accounts of the bus, the roles of the database and the options in its README.",
});
const root = join(import.meta.dirname, "..");
for (const { args } of GENERATIONS) {
  const ran = spawnSync(join(root, "node_modules", ".bin", "buf"), args(root), {
    cwd: join(root, "proto"),
    stdio: "inherit",
    timeout: 60_000,
  });
  if (ran.error !== undefined)
    console.error(`buf could not be run, which npm installs: ${ran.error.message}`);
  process.exitCode ||= ran.status ?? 1;
}
// Only now, as it loads what was just generated.
const { busAccounts } = await import("@hone/messaging");
writeFileSync(
  join(root, "helm/hone/files/bus-accounts.json"),
  `${JSON.stringify(busAccounts(), undefined, 2)}\n`,
);
writeFileSync(join(root, "helm/hone/files/roles.sql"), chartRolesScript());
const readme = join(root, "helm/hone/README.md");
const values = readFileSync(join(root, "helm/hone/values.yaml"), "utf8");
writeFileSync(readme, withOptions(readFileSync(readme, "utf8"), values));
