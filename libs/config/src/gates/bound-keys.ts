/**
 * Keys of servers outside, each bound by the operator to the hosts that may get it.
 *
 * Run files name a key by its variable and send it to an address of their own. Without a binding, whoever may publish a run
 * could have any key sent to a server of theirs.
 *
 *     HONE_JUDGE_KEY_GRADER=…
 *     HONE_JUDGE_KEY_GRADER_HOSTS=api.example.com,judge.internal:8443
 *
 * K1: a key goes to the hosts of its `…_HOSTS` and to no others; one that is bound to none goes nowhere.
 * K2: over https, on its usual port where no other is named. `http://host` binds to plain HTTP on purpose. This machine
 *     (localhost, 127.0.0.1, [::1]) may be asked either way, and on every port where none is named.
 * K3: whoever sends a key follows no redirect: it would go on to a host that nobody bound.
 */

import { InvalidInputError } from "@hone/core";
import { ConfigError } from "../errors.ts";

/** Ends the name of the variable that binds another one. */
const HOSTS_SUFFIX = "_HOSTS";
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

interface BoundKey {
  readonly value: string;
  /** Such as `https://api.example.com`; `//127.0.0.1` for every port of this machine. */
  readonly origins: ReadonlySet<string>;
}

type Environment = Readonly<Record<string, string | undefined>>;

export class BoundKeys {
  /** For where there is no operator who could have set any. */
  static readonly none = new BoundKeys("", {}, "this process");

  readonly #keys: ReadonlyMap<string, BoundKey>;
  readonly #service: string;

  /**
   * @param prefix that the names of all keys begin with, such as `HONE_JUDGE_KEY`.
   * @param service that the variables are set for, for errors.
   * @throws {ConfigError} when a binding is no list of hosts.
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
   * The key that a variable holds, for a request to an address.
   * @param path of what names the variable, for errors, such as `judge.keyVariable`.
   * @throws {InvalidInputError} where it is not set, or may not be sent there; the message says what to set.
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

/** @throws {ConfigError} naming the entry that is no host. */
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
    const message = `${name} holds "${entry}", which is no host; give ${allowed}, separated by commas`;
    throw new ConfigError("the environment", [{ key: name, value: entry, allowed, message }]);
  }
  if (hasScheme || !LOOPBACK.test(url.hostname)) return [url.origin];
  // K2
  return url.host === entry && url.port === ""
    ? [`//${url.hostname}`]
    : [url.origin, new URL(`http://${entry}`).origin];
}
