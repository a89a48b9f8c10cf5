/**
 * The part of a Kubernetes API server that Helm uses when it renders an upgrade with `helm template --dry-run=server
 * --kube-apiserver URL`: the list of kinds, and the Secrets of an earlier install, which templates look up.
 */

import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Manifest } from "../helm.ts";

const VERSION = { major: "1", minor: "34", gitVersion: "v1.34.0" };
/** Kinds of the chart by their group and version. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  v1: ["Secret", "Service", "ServiceAccount", "ConfigMap", "PersistentVolumeClaim", "Pod"],
  "apps/v1": ["Deployment", "StatefulSet"],
  "networking.k8s.io/v1": ["NetworkPolicy"],
  "policy/v1": ["PodDisruptionBudget"],
};

/** Helm's first requests, by path: the lists of groups, versions and kinds. */
const DISCOVERY = new Map<string, object>([
  ["/version", VERSION],
  ["/api", { kind: "APIVersions", versions: ["v1"] }],
  ["/apis", groupList()],
  ...Object.entries(KINDS).map(
    ([version, kinds]) =>
      [version === "v1" ? "/api/v1" : `/apis/${version}`, resourceList(version, kinds)] as const,
  ),
]);

export class ApiServer implements AsyncDisposable {
  /** Names of the Secrets that were requested. */
  readonly asked: string[] = [];
  readonly #server: Server;

  private constructor(manifests: readonly Manifest[]) {
    const secrets = new Map(
      manifests.filter(({ kind }) => kind === "Secret").map((each) => [each.metadata.name as string, each]),
    );
    this.#server = createServer((request, response) => {
      const { pathname } = new URL(request.url ?? "/", "http://cluster");
      const known = DISCOVERY.get(pathname);
      if (known !== undefined) return answer(response, 200, known);
      const name = /^\/api\/v1\/namespaces\/[^/]+\/secrets\/([^/]+)$/.exec(pathname)?.[1];
      if (name !== undefined) this.asked.push(name);
      const secret = name === undefined ? undefined : secrets.get(name);
      if (secret === undefined) return answer(response, 404, notFound(pathname));
      return answer(response, 200, asStored(secret));
    });
  }

  /** @param manifests the earlier install; empty if there was none. */
  static async start(manifests: readonly Manifest[]): Promise<ApiServer> {
    const api = new ApiServer(manifests);
    api.#server.listen(0, "127.0.0.1");
    await once(api.#server, "listening");
    return api;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

function groupList(): object {
  const groups = Object.keys(KINDS)
    .filter((groupVersion) => groupVersion.includes("/"))
    .map((groupVersion) => {
      const [name, version] = groupVersion.split("/");
      const only = { groupVersion, version };
      return { name, versions: [only], preferredVersion: only };
    });
  return { kind: "APIGroupList", apiVersion: "v1", groups };
}

function resourceList(groupVersion: string, kinds: readonly string[]): object {
  const resources = kinds.map((kind) => {
    const singularName = kind.toLowerCase();
    const name = singularName.replace(/y$/, "ie").concat("s");
    return { name, singularName, namespaced: true, kind, verbs: ["get", "list"] };
  });
  return { kind: "APIResourceList", groupVersion, resources };
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function notFound(path: string): object {
  return {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    reason: "NotFound",
    code: 404,
    message: path,
  };
}

/** Converts a Secret's `stringData` to base64 in `data`, as a server does. */
function asStored({ stringData, ...secret }: Manifest): object {
  const data = Object.entries<string>(stringData ?? {}).map(([key, text]) => [
    key,
    Buffer.from(text).toString("base64"),
  ]);
  return { ...secret, data: Object.fromEntries(data) };
}
