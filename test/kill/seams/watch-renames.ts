/** Reports every rename of a file or folder to the gate before it happens. */

import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import type { MomentGate } from "./moment-gate.ts";

export function watchRenames(gate: MomentGate): void {
  const { rename } = fs;
  fs.rename = async function watchedRename(from, to) {
    const what = `rename ${from} ${to}`;
    const stop = gate.isArmed() ? gate.report(what) : undefined;
    if (stop === "before") gate.meet(what, true);
    await rename(from, to);
    if (stop === "after") gate.meet(what, true);
  };
  syncBuiltinESMExports();
}
