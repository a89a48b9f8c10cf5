/**
 * What every HTTP server of Hone asks of a request before anything else looks at it. The attacker is a web page that
 * somebody on this machine, or in this network, has open in a browser: it can make that browser send requests here.
 *
 * G1: the host that the request names is an address, `localhost`, or a name that the operator allows. A page that points a
 *     name of its own at this server (DNS rebinding) is of the same origin as its answers, but cannot change that name.
 * G2: a request that a page of another origin sends is refused, by `Origin` and by `Sec-Fetch-Site`.
 * G3: a body is JSON or protobuf by its declared type: what a form can send across origins without asking first is refused. A
 *     request with a credential in its headers is a program's, as a browser asks before it sends such headers elsewhere.
 *
 * Probes pass without G1 by coming to an address, as kubelets and Prometheus do.
 */

import { isIP } from "node:net";
import type { MiddlewareHandler } from "hono";
import { errorBody } from "./http-app.ts";

const BODY_TYPES = new Set(["application/json", "application/x-protobuf"]);
/** Headers that no form and no image can carry. */
const CREDENTIALS = ["authorization", "x-api-key"];
/** Names that always mean this machine, which no other name server answers for. */
const OWN_NAME = /^(localhost|.+\.localhost)$/;

/**
 * @param allowedHosts names without a port; one that begins with a dot stands for every name below it.
 */
export function guardRequests(allowedHosts: () => readonly string[]): MiddlewareHandler {
  return async function guardRequest(c, next) {
    const host = c.req.header("host") ?? "";
    const name = hostName(host);
    if (name === undefined || !isAllowed(name, allowedHosts())) {
      return c.json(
        errorBody(
          "HOST_NOT_ALLOWED",
          `This server does not answer for the host "${host.slice(0, 256)}"; its operator can allow the name with HONE_HTTP_ALLOWED_HOSTS`,
        ),
        421,
      ); // G1
    }
    const origin = c.req.header("origin");
    const site = c.req.header("sec-fetch-site");
    const isForeign =
      (origin !== undefined && originHost(origin) !== host.toLowerCase()) ||
      (site === "cross-site" && c.req.header("sec-fetch-mode") !== "navigate");
    if (isForeign) {
      const from = origin === undefined ? "a page of another site" : `a page of ${origin.slice(0, 256)}`;
      return c.json(errorBody("ORIGIN_NOT_ALLOWED", `This server takes no requests from ${from}`), 403); // G2
    }
    const type = c.req.header("content-type")?.split(";")[0]?.trim().toLowerCase() ?? "";
    const isProgram = CREDENTIALS.some((name) => c.req.header(name) !== undefined);
    if (!isProgram && hasBody(c.req.raw.headers) && !BODY_TYPES.has(type)) {
      const given = type === "" ? "none" : `"${type.slice(0, 128)}"`;
      return c.json(
        errorBody(
          "UNSUPPORTED_MEDIA_TYPE",
          `The content type of a body must be application/json; it is ${given}`,
        ),
        415,
      ); // G3
    }
    return next();
  };
}

function isAllowed(name: string, allowed: readonly string[]): boolean {
  if (isIP(name) !== 0 || OWN_NAME.test(name)) return true;
  return allowed.some((each) => (each.startsWith(".") ? name.endsWith(each) : name === each));
}

/** The name without its port, in lower case; an IPv6 address without its brackets. Undefined for anything else. */
function hostName(host: string): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^\s:/@[\]]+))(?::\d{1,5})?$/i.exec(host);
  return (match?.[1] ?? match?.[2])?.toLowerCase().replace(/\.$/, "");
}

/** Host and port of an origin, as `Host` has them; empty for `null` and what is none. */
function originHost(origin: string): string {
  return /^https?:\/\/([^/]+)$/i.exec(origin)?.[1]?.toLowerCase() ?? "";
}

function hasBody(headers: Headers): boolean {
  return headers.has("transfer-encoding") || Number(headers.get("content-length") ?? 0) > 0;
}
