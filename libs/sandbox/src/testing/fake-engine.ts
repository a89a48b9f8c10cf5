/**
 * A container runtime for tests: it speaks the part of the Docker Engine API that Hone uses, on a Unix socket, and runs commands
 * as child processes in a temporary folder. It isolates nothing. Only commands of the tests themselves may run in it.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import path from "node:path";
import { temporaryFolder } from "@hone/testing";

/** A container of the fake. */
export interface FakeContainer {
  readonly id: string;
  /** What it was created with. */
  readonly body: CreateBody;
  /** Stands for its work folder. */
  readonly folder: string;
  state: "created" | "running" | "exited";
  isOutOfMemory: boolean;
  readonly children: Set<ChildProcess>;
}

export interface CreateBody {
  readonly Image: string;
  readonly User: string;
  readonly WorkingDir: string;
  readonly Labels: Readonly<Record<string, string>>;
  readonly NetworkDisabled: boolean;
  readonly HostConfig: Readonly<Record<string, unknown>>;
}

interface Execution {
  readonly container: FakeContainer;
  readonly command: readonly string[];
  readonly user: string;
  exitCode: number | undefined;
}

/** The command with which all processes of a container are ended. It must never run outside of one. */
const END_ALL = "kill -KILL -1";

export class FakeEngine implements AsyncDisposable {
  readonly socketPath: string;
  readonly containers = new Map<string, FakeContainer>();
  /** Ids of images by name. */
  readonly images = new Map([["test/image:1", `sha256:${"1".repeat(64)}`]]);
  /** Commands that were started, with the user of each. */
  readonly started: { readonly user: string; readonly command: readonly string[] }[] = [];
  /** Takes the place of an answer: a status, `hang` for no answer at all; undefined = none. */
  interfere: (method: string, path: string) => number | "hang" | undefined = () => undefined;
  readonly #executions = new Map<string, Execution>();
  readonly #resources: AsyncDisposableStack;
  readonly #folder: string;

  private constructor(folder: string, resources: AsyncDisposableStack) {
    this.#folder = folder;
    this.#resources = resources;
    this.socketPath = path.join(folder, "engine.sock");
  }

  static async start(): Promise<FakeEngine> {
    const resources = new AsyncDisposableStack();
    const folder = resources.use(await temporaryFolder("engine"));
    const engine = new FakeEngine(folder.path, resources);
    const server = createServer((request, response) => {
      engine.#answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
    await new Promise<void>((resolve) => server.listen(engine.socketPath, resolve));
    resources.defer(async () => {
      for (const container of engine.containers.values()) endAll(container);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    return engine;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }

  /** Ends a container, as a lack of memory or somebody else would. */
  end(container: FakeContainer, isOutOfMemory: boolean): void {
    endAll(container);
    container.state = "exited";
    container.isOutOfMemory = isOutOfMemory;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://localhost");
    const method = request.method ?? "GET";
    const [, kind = "", id = "", verb = ""] = url.pathname.split("/");
    const send = (status: number, body?: unknown) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(body === undefined ? undefined : JSON.stringify(body));
    };
    const interference = this.interfere(method, url.pathname);
    if (interference === "hang") return;
    if (interference !== undefined) return send(interference, { message: "as the test wants it" });
    request.setEncoding("utf8");
    let text = "";
    for await (const chunk of request) text += String(chunk);
    const body = (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>;
    const missing = () => send(404, { message: `no such thing: ${id}` });
    if (kind === "images") {
      const image = this.images.get(decodeURIComponent(id));
      return image === undefined ? missing() : send(200, { Id: image });
    }
    if (kind === "exec") {
      const execution = this.#executions.get(id);
      if (execution === undefined) return missing();
      if (verb === "start") return this.#run(execution, response);
      const { exitCode } = execution;
      return send(200, { ID: id, Running: exitCode === undefined, ExitCode: exitCode ?? null });
    }
    if (id === "json") {
      const [label] =
        (JSON.parse(url.searchParams.get("filters") ?? "{}") as { label?: string[] }).label ?? [];
      const listed = [...this.containers.values()].filter(
        ({ body: { Labels } }) => label === undefined || Labels[label] !== undefined,
      );
      return send(
        200,
        listed.map((each) => ({ Id: each.id, Labels: each.body.Labels, State: each.state })),
      );
    }
    if (id === "create") return send(201, { Id: await this.#create(body as unknown as CreateBody) });
    const container = this.containers.get(id);
    if (container === undefined) return missing();
    if (method === "DELETE") {
      endAll(container);
      this.containers.delete(id);
      return send(204);
    }
    if (verb === "start") {
      container.state = "running";
      return send(204);
    }
    if (verb === "exec") {
      if (container.state !== "running") return send(409, { message: "the container is not running" });
      const exec = randomUUID();
      const { Cmd: command, User: user } = body as { Cmd: string[]; User: string };
      this.#executions.set(exec, { container, command, user, exitCode: undefined });
      return send(201, { Id: exec });
    }
    const { state, isOutOfMemory } = container;
    send(200, { State: { Running: state === "running", Status: state, OOMKilled: isOutOfMemory } });
  }

  async #create(body: CreateBody): Promise<string> {
    const id = randomUUID();
    const folder = path.join(this.#folder, id);
    await mkdir(folder);
    this.containers.set(id, {
      id,
      body,
      folder,
      state: "created",
      isOutOfMemory: false,
      children: new Set(),
    });
    return id;
  }

  #run(execution: Execution, response: ServerResponse): void {
    const { container, command, user } = execution;
    this.started.push({ user, command });
    response.writeHead(200, { "content-type": "application/vnd.docker.raw-stream" });
    response.flushHeaders();
    if (command.at(-1) === END_ALL) {
      endAll(container);
      execution.exitCode = 0;
      response.end();
      return;
    }
    const { WorkingDir: workFolder } = container.body;
    const [program = "", ...args] = command.map((each) =>
      each === workFolder || each === "/tmp" ? container.folder : each,
    );
    const child = spawn(program, args, {
      cwd: container.folder,
      env: { PATH: process.env.PATH, HOME: container.folder },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    container.children.add(child);
    for (const [kind, stream] of [
      [1, child.stdout],
      [2, child.stderr],
    ] as const) {
      stream.on("data", (chunk: Buffer) =>
        response.write(Buffer.concat([headOf(kind, chunk.length), chunk])),
      );
    }
    child.once("exit", (code, signal) => {
      execution.exitCode = code ?? (signal === "SIGKILL" ? 137 : 143);
    });
    // The streams close when nobody holds them any more, as those of a real runtime do.
    child.once("close", () => response.end());
    child.once("error", () => {
      execution.exitCode = 127;
      response.end();
    });
  }
}

function headOf(kind: number, length: number): Buffer {
  const head = Buffer.alloc(8);
  head[0] = kind;
  head.writeUInt32BE(length, 4);
  return head;
}

/** Ends the process groups of a container. */
function endAll({ children }: FakeContainer): void {
  for (const { pid } of children) {
    if (pid === undefined) continue;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
  children.clear();
}
