/** The address of a bus as people write it, taken apart for the client, which wants user and password by themselves. */

import { InvalidInputError } from "@hone/core";
import { redactText } from "@hone/telemetry";

/** Where a bus is, and as whom it is entered. */
export interface ServerAddress {
  /** Without user and password; several, separated by commas. */
  readonly servers: string;
  readonly user?: string;
  readonly password?: string;
}

/**
 * Takes user and password out of `nats://user:password@host:4222`; of several addresses the first that has some gives
 * them.
 * @throws {InvalidInputError} for what is no address. The message holds no password.
 */
export function splitCredentials(url: string): ServerAddress {
  let credentials: { user: string; password: string } | undefined;
  const servers = url.split(",").map((address) => {
    const text = address.trim();
    if (!text.includes("@")) return text;
    const withScheme = text.includes("://") ? text : `nats://${text}`;
    if (!URL.canParse(withScheme)) {
      throw new InvalidInputError(
        `Cannot connect as the bus must have a NATS address: current value is "${redactText(text)}"`,
        { path: "url", allowed: "an address such as nats://user:password@host:4222" },
      );
    }
    const parsed = new URL(withScheme);
    credentials ??= {
      user: decodeURIComponent(parsed.username),
      password: decodeURIComponent(parsed.password),
    };
    return `${parsed.protocol}//${parsed.host}`;
  });
  return { servers: servers.join(","), ...credentials };
}
