/** `npm run generate`: writes libs/proto-gen/src/gen anew from proto/. */

import { spawnSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const ran = spawnSync(join(root, "node_modules", ".bin", "buf"), ["generate"], {
  cwd: join(root, "proto"),
  stdio: "inherit",
  timeout: 60_000,
});
if (ran.error !== undefined)
  console.error(`Cannot run buf as npm must have installed it: ${ran.error.message}`);
process.exitCode = ran.status ?? 1;
