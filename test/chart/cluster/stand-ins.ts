/** Stand-ins for the pods of PostgreSQL and Jaeger: an embedded PostgreSQL behind the pod's address, and an OTLP receiver. */

import { once } from "node:events";
import { createServer } from "node:http";
import path from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { type ChildExit, launchPostgres, type RunningServer } from "@hone/embedded";
import { ExportTraceServiceRequestSchema } from "@hone/otlp-proto";
import postgres from "postgres";
import { TcpProxy } from "../../faults/tcp-proxy.ts";
import type { Manifest } from "../helm.ts";
import type { PodPlan } from "./hosts.ts";
import { containerEnvironment, find } from "./mounts.ts";

const POSTGRES_PORT = 5432;
const OTLP_PORT = 4318;

/** The database pod: libs/embedded starts the server, and the chart's script creates its roles. */
export class PostgresStandIn {
  readonly #plan: PodPlan;
  readonly #manifests: readonly Manifest[];
  readonly #folder: string;
  #server: RunningServer | undefined;
  #proxy: TcpProxy | undefined;
  #isMade = false;

  constructor(plan: PodPlan, manifests: readonly Manifest[], folder: string) {
    this.#plan = plan;
    this.#manifests = manifests;
    this.#folder = path.join(folder, "claims", "postgres");
  }

  /** Address of the database as its superuser, for tests. */
  get url(): string {
    if (this.#server === undefined) throw new Error("the database is not running");
    return this.#server.url;
  }

  async start(): Promise<void> {
    this.#server = await launchPostgres({ folder: this.#folder, database: "hone" });
    if (!this.#isMade) await this.#makeRoles(this.#server.url);
    this.#isMade = true;
    this.#proxy = await TcpProxy.start(this.#server.url, { host: this.#plan.address, port: POSTGRES_PORT });
  }

  async kill(): Promise<void> {
    await this.#proxy?.[Symbol.asyncDispose]();
    if (this.#server === undefined) return;
    process.kill(this.#server.pid, "SIGKILL");
    await this.#server.exited;
  }

  async stop(): Promise<void> {
    await this.delete();
  }

  /** Ends the server with a fast shutdown, as the image does when its pod is replaced. */
  async delete(): Promise<ChildExit | undefined> {
    await this.#proxy?.[Symbol.asyncDispose]();
    return this.#server?.stop();
  }

  /** Runs the chart's scripts as the image does, including psql's variables. */
  async #makeRoles(url: string): Promise<void> {
    const container = this.#plan.spec.containers[0];
    const env = containerEnvironment(this.#plan, container, this.#manifests, []);
    const scripts = find(this.#manifests, "ConfigMap", this.#plan.spec.volumes[0].configMap.name).data;
    const variables = Object.fromEntries(
      [...scripts["10-roles.sh"].matchAll(/-v (\w+)="\$(\w+)"/g)].map(([, name, variable]) => [
        name,
        env[variable],
      ]),
    );
    const text = scripts["roles.psql"].replace(/:'(\w+)'/g, (_: string, name: string) => {
      if (variables[name] === undefined)
        throw new Error(`roles.psql uses ${name}, which 10-roles.sh does not set`);
      return `'${variables[name]}'`;
    });
    const sql = postgres(url, { max: 1, onnotice: () => undefined });
    try {
      await sql.unsafe(text);
    } finally {
      await sql.end({ timeout: 5 });
    }
  }
}

/** The parts of a span that tests use. */
export interface SeenSpan {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly numLinks: number;
  readonly attributes: Readonly<Record<string, string>>;
}

/** Receives spans on Jaeger's OTLP/HTTP port. */
export class JaegerStandIn implements AsyncDisposable {
  readonly spans: SeenSpan[] = [];
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      if (request.url === "/v1/traces") this.#take(Buffer.concat(chunks));
      response
        .writeHead(request.url === "/v1/traces" ? 200 : 404, { "content-type": "application/x-protobuf" })
        .end();
    });
  });

  static async start(plan: PodPlan): Promise<JaegerStandIn> {
    const jaeger = new JaegerStandIn();
    jaeger.#server.listen(OTLP_PORT, plan.address);
    await once(jaeger.#server, "listening");
    return jaeger;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #take(body: Buffer): void {
    const { resourceSpans } = fromBinary(ExportTraceServiceRequestSchema, body);
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = textsOf(resource?.attributes ?? [])["service.name"] ?? "";
      for (const span of scopeSpans.flatMap(({ spans }) => spans)) {
        this.spans.push({
          service,
          name: span.name,
          traceId: Buffer.from(span.traceId).toString("hex"),
          numLinks: span.links.length,
          attributes: textsOf(span.attributes),
        });
      }
    }
  }
}

function textsOf(
  attributes: readonly {
    readonly key: string;
    readonly value?: { readonly value: { readonly value?: unknown } } | undefined;
  }[],
): Record<string, string> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, String(value?.value.value ?? "")]));
}
