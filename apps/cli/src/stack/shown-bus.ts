/** Shows the address of the bus without its password, and with the file that holds the password. */

import { splitCredentials } from "@hone/messaging";
import { type Project, shownPath } from "../project.ts";
import { addressFileOf } from "./secrets/bus-users.ts";

/** Such as `nats://127.0.0.1:4222, with its password in .hone/bus/client.url`. */
export function shownBus(project: Project, url: string): string {
  const { servers, password } = splitCredentials(url);
  if (password === undefined || process.env.HONE_NATS_URL) return servers;
  return `${servers}, with its password in ${shownPath(addressFileOf(project, "client"))}`;
}
