/**
 * The users of an embedded bus: one for each service, with the same rights as on a cluster; the user `client` for commands
 * that submit runs; and the user `owner`, who may do everything.
 *
 * Each user's address, with its password, is in its own file, which only the owner of the account may read.
 */

import { rm } from "node:fs/promises";
import type { NatsUser, RunningNats } from "@hone/embedded";
import { BUS_USERS, type BusUser, busRights, CLIENT } from "@hone/messaging";
import type { Project } from "../../project.ts";
import { addressFile, writeAddressFiles } from "./address-files.ts";

/** The user who may do everything, for the `nats` program and for creating the streams. */
export const OWNER = "owner";

/** The users for the server. The first one's address is that of the stack. */
export function busUsers(): readonly [NatsUser, ...NatsUser[]] {
  const rights = busRights();
  const withRights = (name: BusUser): NatsUser => ({ name, rights: rights[name] });
  return [
    withRights(CLIENT),
    ...BUS_USERS.filter((name) => name !== CLIENT).map(withRights),
    { name: OWNER },
  ];
}

/** Path of the file with a user's address. */
export function addressFileOf(project: Project, user: BusUser | typeof OWNER): string {
  return addressFile(project.bus, user);
}

/** Writes the files of all users. */
export async function writeAddresses(project: Project, nats: RunningNats): Promise<void> {
  const urls = [...BUS_USERS, OWNER].map((user) => [user, nats.urlOf(user)]);
  await writeAddressFiles(project.bus, Object.fromEntries(urls));
}

/** Removes the files of an earlier stack. */
export async function removeAddresses(project: Project): Promise<void> {
  await rm(project.bus, { recursive: true, force: true });
}
