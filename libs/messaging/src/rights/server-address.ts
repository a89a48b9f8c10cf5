/** Splits the address of a bus for the client library, which takes user and password separately. */

import { InvalidInputError } from "@hone/core";
import { redactText } from "@hone/telemetry";

/** The address of a bus, and the user to connect as. */
export interface ServerAddress {
  /** The address without user and password, or several, separated by commas. */
  readonly servers: string;
  readonly user?: string;
  readonly password?: string;
}

/**
 * Takes user and password out of `nats://user:password@host:4222`. With several addresses, the first that has a user counts.
 * @throws {InvalidInputError} for an invalid address. The message does not contain the password.
 */
export function splitCredentials(url: string): ServerAddress {
  let credentials: { user: string; password: string } | undefined;
  const servers = url.split(",").map((address) => {
    const text = address.trim();
    if (!text.includes("@")) return text;
    const withScheme = text.includes("://") ? text : `nats://${text}`;
    if (!URL.canParse(withScheme)) {
      throw new InvalidInputError(
        `"${redactText(text)}" is not the address of a NATS server; give one such as nats://user:password@host:4222`,
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
