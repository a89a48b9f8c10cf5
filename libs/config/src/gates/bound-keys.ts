/**
 * API keys of outside servers. The operator binds each key to the hosts that it may be sent to.
 *
 * A run file names a key by its variable and the address that the key is sent to. Without a binding, anyone who may publish
 * a run could have every key sent to their own server.
 *
 *     HONE_JUDGE_KEY_GRADER=…
 *     HONE_JUDGE_KEY_GRADER_HOSTS=api.example.com,judge.internal:8443
 *
 * K1: a key is sent to the hosts in its `…_HOSTS` and to no others; a key without hosts is sent nowhere.
 * K2: it is sent over https, on the standard port unless the host names another. `http://host` allows plain HTTP. On this
 *     machine (localhost, 127.0.0.1, [::1]) both are allowed, and all ports unless one is named.
 * K3: a request with a key follows no redirect, as that could lead to a host that the key is not bound to.
 */

import { InvalidInputError } from "@hone/core";
import { ConfigError } from "../errors.ts";

/** The end of the name of the variable that holds a key's hosts. */
const HOSTS_SUFFIX = "_HOSTS";
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

interface BoundKey {
  readonly value: string;
  /** Origins such as `https://api.example.com`; `//127.0.0.1` stands for every port of this machine. */
  readonly origins: ReadonlySet<string>;
}

type Environment = Readonly<Record<string, string | undefined>>;

export class BoundKeys {
  /** No keys at all, for programs that no operator configures. */
  static readonly none = new BoundKeys("", {}, "this process");

  readonly #keys: ReadonlyMap<string, BoundKey>;
  readonly #service: string;

  /**
   * @param prefix the beginning of the names of all keys, such as `HONE_JUDGE_KEY`.
   * @param service names the service in errors.
   * @throws {ConfigError} when a binding is not a list of hosts.
   */
  constructor(prefix: string, environment: Environment, service: string) {
    this.#service = service;
    this.#keys = new Map(
      Object.entries(environment).flatMap(([name, value]): [string, BoundKey][] =>
        name.startsWith(prefix) && !name.endsWith(HOSTS_SUFFIX) && value !== undefined && value !== ""
          ? [[name, { value, origins: originsOf(name, environment) }]]
          : [],
      ),
    );
  }

  /**
   * @returns the key that a variable holds, for a request to an address.
   * @param path the key of the run file that names the variable, for errors, such as `judge.keyVariable`.
   * @throws {InvalidInputError} when the key is not set or may not be sent there; the message says what to set.
   */
  keyFor(variable: string, address: string, path: string): string {
    const key = this.#keys.get(variable);
    const { host, hostname, origin, protocol } = new URL(address);
    const binding = `${variable}${HOSTS_SUFFIX}`;
    if (key === undefined) {
      const allowed = `a variable that is set for ${this.#service}`;
      const message = `${path} names ${variable}, which is not set for ${this.#service}; set it there, and ${binding}=${host} so that it may be sent to ${host}`;
      throw new InvalidInputError(message, { path, allowed });
    }
    const isOwn = LOOPBACK.test(hostname);
    if (key.origins.has(origin) || (isOwn && key.origins.has(`//${hostname}`))) return key.value;
    const isPlain = protocol === "http:" && !isOwn;
    const entry = isPlain ? `http://${host}` : host;
    const known = [...key.origins].join(", ");
    const state = known === "" ? "is bound to no host" : `may be sent to ${known} only`;
    const plainly = isPlain ? ", which sends it unencrypted" : "";
    const message = `${variable} ${state}, and ${path} would send it to ${origin}; if it may go there, add ${entry} to ${binding} of ${this.#service}${plainly}`;
    throw new InvalidInputError(message, { path, allowed: `a variable that is bound to ${origin}` });
  }
}

/** @throws {ConfigError} that names an entry which is not a host. */
function originsOf(variable: string, environment: Environment): Set<string> {
  const name = `${variable}${HOSTS_SUFFIX}`;
  const entries = (environment[name] ?? "")
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
  return new Set(entries.flatMap((entry) => originsOfEntry(name, entry)));
}

function originsOfEntry(name: string, entry: string): string[] {
  const hasScheme = /^https?:\/\//.test(entry);
  const address = hasScheme ? entry : `https://${entry}`;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const isHost =
    url !== undefined &&
    url.pathname === "/" &&
    `${url.username}${url.password}${url.search}${url.hash}` === "";
  if (!isHost || entry.includes("*")) {
    const allowed = "hosts such as api.example.com, api.example.com:8443 or http://judge.internal";
    const message = `${name} holds "${entry}", which is not a host; give ${allowed}, separated by commas`;
    throw new ConfigError("the environment", [{ key: name, value: entry, allowed, message }]);
  }
  if (hasScheme || !LOOPBACK.test(url.hostname)) return [url.origin];
  // K2
  return url.host === entry && url.port === ""
    ? [`//${url.hostname}`]
    : [url.origin, new URL(`http://${entry}`).origin];
}
