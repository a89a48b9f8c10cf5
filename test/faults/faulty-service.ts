/** A service of a stack that a test starts itself, with a network that can fail and a clock that can be set. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { eventually } from "@hone/testing";
import { REPOSITORY, type TestStack } from "../support/stack.ts";
import { TcpProxy } from "./tcp-proxy.ts";

const START_DEADLINE_MS = 120_000;
const CLOCK_PRELOAD = pathToFileURL(path.join(import.meta.dirname, "clock-preload.ts"));

export class FaultyService implements AsyncDisposable {
  readonly name: string;
  /** The network between the service and the bus. */
  readonly network: TcpProxy;
  readonly #child: ChildProcess;
  readonly #clockFile: string;

  private constructor(name: string, network: TcpProxy, child: ChildProcess, clockFile: string) {
    this.name = name;
    this.network = network;
    this.#child = child;
    this.#clockFile = clockFile;
  }

  /**
   * Starts the service on the stack's bus and database and waits until it is ready.
   * @param instance its HONE_INSTANCE_ID.
   * @param env additional environment variables.
   */
  static async start(
    stack: TestStack,
    name: string,
    instance: string,
    env: Readonly<Record<string, string>> = {},
  ): Promise<FaultyService> {
    const { stateFolder } = stack;
    const lines = readFileSync(path.join(stateFolder, "env", `${name}.env`), "utf8")
      .trimEnd()
      .split("\n");
    const given = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );
    const address = new URL(readFileSync(given.HONE_NATS_URL_FILE ?? assert.fail("no bus"), "utf8"));
    const network = await TcpProxy.start(address.href);
    address.host = network.host;
    const readyFile = path.join(stateFolder, "ready", `${instance}.json`);
    const clockFile = path.join(stateFolder, "ready", `${instance}.clock`);
    writeFileSync(clockFile, "0");
    const logFile = path.join(stateFolder, "logs", `${instance}.log`);
    const log = openSync(logFile, "a");
    const child = spawn(process.execPath, [path.join(REPOSITORY, "services", name, "src", "main.ts")], {
      env: {
        ...process.env,
        ...given,
        ...env,
        NODE_OPTIONS:
          `${env.NODE_OPTIONS ?? process.env.NODE_OPTIONS ?? ""} --import ${CLOCK_PRELOAD}`.trim(),
        HONE_TEST_CLOCK: clockFile,
        HONE_NATS_URL: address.href,
        HONE_NATS_URL_FILE: "",
        HONE_INSTANCE_ID: instance,
        HONE_READY_FILE: readyFile,
        HONE_HTTP_PORT: "0",
      },
      stdio: ["ignore", log, log, "ipc"],
    });
    const service = new FaultyService(name, network, child, clockFile);
    try {
      const isReady = () =>
        !service.isAlive ||
        (JSON.parse(readFileSync(readyFile, "utf8")) as { pid: number }).pid === child.pid;
      await eventually(`${instance} to be ready`, isReady, { deadlineMs: START_DEADLINE_MS });
      assert.ok(service.isAlive, `${instance} ended:\n${readFileSync(logFile, "utf8")}`);
      return service;
    } catch (error) {
      await service[Symbol.asyncDispose]();
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid ?? assert.fail(`${this.name} has no process`);
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Stops the process with SIGSTOP. */
  pause(): void {
    this.#child.kill("SIGSTOP");
  }

  continue(): void {
    this.#child.kill("SIGCONT");
  }

  /** Sets the service's wall clock wrong by this offset. */
  setClock(wrongByMs: number): void {
    writeFileSync(`${this.#clockFile}.new`, String(wrongByMs));
    renameSync(`${this.#clockFile}.new`, this.#clockFile);
  }

  /** Ends the service with SIGTERM. @returns its exit code. */
  async end(): Promise<number | null> {
    this.continue();
    if (this.isAlive) {
      const exited = once(this.#child, "exit");
      this.#child.kill("SIGTERM");
      await exited;
    }
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.network.restore();
    await this.end();
    await this.network[Symbol.asyncDispose]();
  }
}
