/** Lays out the files of the services' image as its Dockerfile does, with the packages that are installed here. */

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, symlinkSync } from "node:fs";
import path from "node:path";

const REPOSITORY = path.resolve(import.meta.dirname, "..", "..", "..");
const LAY_OUT_TIMEOUT_MS = 60_000;

/** Links all of `node_modules` but Hone's own packages, which come from the image. @returns the folder. */
export function layOutImage(folder: string): string {
  execFileSync(process.execPath, [path.join(REPOSITORY, "scripts", "image-context.ts"), folder], {
    timeout: LAY_OUT_TIMEOUT_MS,
  });
  const modules = path.join(REPOSITORY, "node_modules");
  const own = path.join(folder, "node_modules");
  mkdirSync(path.join(own, "@hone"), { recursive: true });
  for (const name of readdirSync(modules)) {
    if (name !== "@hone" && name !== ".bin") symlinkSync(path.join(modules, name), path.join(own, name));
  }
  for (const group of ["libs", "services", "apps"]) {
    for (const name of readdirSync(path.join(folder, group))) {
      symlinkSync(path.join(folder, group, name), path.join(own, "@hone", name));
    }
  }
  return folder;
}
