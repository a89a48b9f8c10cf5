/**
 * The roles of an embedded database: one each for trainer and tracer, with the same rights as on a cluster, and the superuser
 * for a person with psql, which no service uses.
 *
 * Each role's address, with its password, is in its own file, which only the owner of the account may read.
 */

import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { RunningServer } from "@hone/embedded";
import type { Project } from "../../project.ts";
import type { RowKeeper } from "../services.ts";
import { addressFile, writeAddressFiles } from "./address-files.ts";
import { OWNER } from "./bus-users.ts";

/** Path of the file with a role's address. */
export function databaseFileOf(project: Project, role: RowKeeper | typeof OWNER): string {
  return addressFile(project.database, role);
}

/** Creates the roles, gives them the tables that an earlier version created as the superuser, and writes their files. */
export async function openToRoles(
  project: Project,
  { url }: RunningServer,
  signal: AbortSignal,
): Promise<void> {
  // Imported here because it loads drizzle, which is not needed with a database of the user's.
  const { readyRoles } = await import("@hone/storage");
  const roles = await readyRoles({ url, signal });
  await writeAddressFiles(project.database, { ...roles, [OWNER]: url });
}

/** Removes the files of an earlier stack, and the one in `ready` that services of an earlier version used. */
export async function removeDatabaseAddresses(project: Project): Promise<void> {
  await rm(project.database, { recursive: true, force: true });
  await rm(join(project.ready, "postgres.url"), { force: true });
}

/** A database's address without login, for probes. Text that is no address is left for a service to refuse. */
export function withoutLogin(url: string): string {
  if (!URL.canParse(url)) return url;
  const address = new URL(url);
  address.username = "";
  address.password = "";
  return address.href;
}
