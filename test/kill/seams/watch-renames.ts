/** Tells the gate of every file or folder before it gets its final name. */

import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import type { MomentGate } from "./moment-gate.ts";

export function watchRenames(gate: MomentGate): void {
  const { rename } = fs;
  fs.rename = async function watchedRename(from, to) {
    const what = `rename ${from} ${to}`;
    const stop = gate.isArmed() ? gate.tell(what) : undefined;
    if (stop === "before") gate.meet(what, true);
    await rename(from, to);
    if (stop === "after") gate.meet(what, true);
  };
  syncBuiltinESMExports();
}
