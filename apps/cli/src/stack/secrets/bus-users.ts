/**
 * Who enters an embedded bus: every service as a user of its own, with the rights that it has on a cluster, this command
 * line as the user of people who submit runs, and the owner of the machine's account as one that may do everything.
 *
 * A user's address, with its password, lies in a file of its own that the account's owner alone may read.
 */

import { rm } from "node:fs/promises";
import type { NatsUser, RunningNats } from "@hone/embedded";
import { BUS_USERS, type BusUser, busRights, CLIENT } from "@hone/messaging";
import type { Project } from "../../project.ts";
import { addressFile, writeAddressFiles } from "./address-files.ts";

/** May do everything: for the `nats` program, and for a service that an editor starts. */
export const OWNER = "owner";

/** As the server takes them. The first one's address is that of the stack. */
export function busUsers(): readonly [NatsUser, ...NatsUser[]] {
  const rights = busRights();
  const withRights = (name: BusUser): NatsUser => ({ name, rights: rights[name] });
  return [
    withRights(CLIENT),
    ...BUS_USERS.filter((name) => name !== CLIENT).map(withRights),
    { name: OWNER },
  ];
}

/** The file that holds a user's address. */
export function addressFileOf(project: Project, user: BusUser | typeof OWNER): string {
  return addressFile(project.bus, user);
}

/** Writes every user's file. */
export async function writeAddresses(project: Project, nats: RunningNats): Promise<void> {
  const urls = [...BUS_USERS, OWNER].map((user) => [user, nats.urlOf(user)]);
  await writeAddressFiles(project.bus, Object.fromEntries(urls));
}

/** Those of an earlier stack say nothing of this one. */
export async function removeAddresses(project: Project): Promise<void> {
  await rm(project.bus, { recursive: true, force: true });
}
