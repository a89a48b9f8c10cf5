/**
 * Who enters an embedded database: trainer and tracer, each with a role that has the rights it has on a cluster, and for a
 * person with psql the superuser, as whom no service enters.
 *
 * A role's address, with its password, lies in a file of its own that the account's owner alone may read.
 */

import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { RunningServer } from "@hone/embedded";
import type { Project } from "../../project.ts";
import type { RowKeeper } from "../services.ts";
import { addressFile, writeAddressFiles } from "./address-files.ts";
import { OWNER } from "./bus-users.ts";

/** The file that holds a role's address. */
export function databaseFileOf(project: Project, role: RowKeeper | typeof OWNER): string {
  return addressFile(project.database, role);
}

/** Makes the roles, hands over what an earlier version wrote as the superuser, and writes every role's file. */
export async function openToRoles(
  project: Project,
  { url }: RunningServer,
  signal: AbortSignal,
): Promise<void> {
  // Loads drizzle, which a stack on a database of its user's does without.
  const { readyRoles } = await import("@hone/storage");
  const roles = await readyRoles({ url, signal });
  await writeAddressFiles(project.database, { ...roles, [OWNER]: url });
}

/** Those of an earlier stack say nothing of this one; an earlier version let services enter by the file in `ready`. */
export async function removeDatabaseAddresses(project: Project): Promise<void> {
  await rm(project.database, { recursive: true, force: true });
  await rm(join(project.ready, "postgres.url"), { force: true });
}

/** Where a database is, for whoever only asks whether it answers. What is no address is for a service to refuse. */
export function withoutLogin(url: string): string {
  if (!URL.canParse(url)) return url;
  const address = new URL(url);
  address.username = "";
  address.password = "";
  return address.href;
}
