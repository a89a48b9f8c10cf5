/**
 * Is loaded with `node --import` before the program of a pod, and replaces the pod's network namespace and the cluster's DNS.
 *
 * P1: names of the cluster resolve to the current addresses of their pods, and other names do not resolve.
 * P2: a server that listens on every address listens only on the pod's own.
 */

import dns from "node:dns";
import { readFileSync } from "node:fs";
import net from "node:net";

const { HONE_TEST_POD_ADDRESS: address = "", HONE_TEST_HOSTS: hostsFile = "" } = process.env;

// ---- P1 --------------------------------------------------------------------------------------------------------

type Callback = (error: NodeJS.ErrnoException | null, ...found: unknown[]) => void;

const lookup = dns.lookup as (...args: unknown[]) => void;
const isOfCluster = (name: string) => name.endsWith(".svc.cluster.local");
const addressesOf = (name: string) =>
  (JSON.parse(readFileSync(hostsFile, "utf8")) as Record<string, string[]>)[name] ?? [];

function notFound(name: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: "ENOTFOUND", hostname: name });
}

Object.assign(dns, {
  lookup: (name: string, ...rest: unknown[]) => {
    if (!isOfCluster(name)) return lookup(name, ...rest);
    const options = (rest.length > 1 ? rest[0] : {}) as { all?: boolean };
    const callback = rest.at(-1) as Callback;
    const found = addressesOf(name);
    setImmediate(() => {
      if (found.length === 0) return callback(notFound(name));
      if (options.all)
        return callback(
          null,
          found.map((each) => ({ address: each, family: 4 })),
        );
      return callback(null, found[0], 4);
    });
  },
});
// ---- P2 --------------------------------------------------------------------------------------------------------

const EVERYWHERE = new Set([undefined, "", "0.0.0.0", "::"]);
const listen = net.Server.prototype.listen as (...args: unknown[]) => net.Server;

Object.assign(net.Server.prototype, {
  listen(this: net.Server, ...args: unknown[]) {
    const [first, second] = args;
    if (typeof first === "number" && (typeof second !== "string" || EVERYWHERE.has(second))) {
      const rest = typeof second === "string" ? args.slice(2) : args.slice(1);
      return listen.call(this, first, address, ...rest);
    }
    return listen.apply(this, args);
  },
});
