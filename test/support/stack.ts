/** Starts a whole stack in a temporary folder with the command line, as a user does, and stops it. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { type Bus, connectBus } from "@hone/messaging";
import { eventually, isAlive, temporaryFolder } from "@hone/testing";
import postgres from "postgres";

export const REPOSITORY = path.resolve(import.meta.dirname, "..", "..");
export const COMMAND_LINE = path.join(REPOSITORY, "apps", "cli", "src", "main.ts");
export const SERVICES = [
  "dataset",
  "agent-rollout",
  "inference-gateway",
  "judge",
  "trainer",
  "tracer",
] as const;
const UP_DEADLINE_MS = 120_000;
/** Lines of each log in the message of a failed test. */
const LOG_LINES = 12;

/** The output and exit code of a command. */
export interface Ended {
  readonly code: number | null;
  readonly output: string;
}

export interface TestStack extends AsyncDisposable {
  /** A connection as the owner. After the supervisor was killed, this is another one; so is `sql`. */
  readonly bus: Bus;
  readonly sql: postgres.Sql;
  /** HONE_STATE_DIR. */
  readonly stateFolder: string;
  readonly pageUrl: string;
  /** Opens the page and its API. */
  readonly token: string;
  /** Asks the tracer, with the stack's token. @param path such as `/api/runs`. */
  page(path: string, signal?: AbortSignal): Promise<Response>;
  /** Runs the command line on this stack. */
  hone(...args: string[]): Promise<Ended>;
  /** Names of the services' processes: that of the service, and `<service>-1` and so on for further ones. */
  serviceProcesses(): readonly string[];
  /** Process id of one of these, of "nats-server", of "postgres" or of the "supervisor", which is `hone up`. */
  pidOf(name: string): number;
  /**
   * Sends SIGKILL to one of these and waits until the supervisor has started another process in its place. If it was the
   * supervisor itself, another `hone up` is started at once, as a user would do.
   */
  kill(name: string, options?: KillOptions): Promise<void>;
  /** The status and the end of each log, for the message of a failed test. */
  describe(): Promise<string>;
}

export interface KillOptions {
  /** Called as soon as the process has ended, before its replacement is waited for. */
  readonly whenGone?: () => void;
}

interface StackFile {
  readonly supervisor: { readonly pid: number };
  readonly pageUrl: string;
  readonly token: string;
  readonly services: Readonly<Record<string, { readonly pid: number }>>;
}

/** Files in the state folder that hold the process ids of the two servers. */
const PID_FILES: Readonly<Record<string, string>> = {
  "nats-server": path.join("nats", "nats-server.pid"),
  postgres: path.join("postgres", "data", "postmaster.pid"),
};

const SUPERVISOR = "supervisor";

export interface StackOptions {
  /** Added to the environment of every process of the stack. */
  readonly env?: Readonly<Record<string, string>>;
  /** Services that the test runs itself. */
  readonly without?: readonly string[];
  /** Services that run as several processes, as `--replicas` takes them. */
  readonly replicas?: Readonly<Record<string, number>>;
  /** Whether the services run in the process of `hone up`. @default false */
  readonly isInProcess?: boolean;
  /** Prepares the state folder, which does not exist yet, before the stack is started. */
  readonly prepare?: (stateFolder: string) => void;
  /** Port for a debugger of the process of `hone up`. */
  readonly inspectPort?: number;
}

/** Starts bus, database and services. The end of the scope stops them and removes their folder. */
export async function startStack(options: StackOptions = {}): Promise<TestStack> {
  const folder = await temporaryFolder("stack");
  const stateFolder = path.join(folder.path, "state");
  const env = {
    ...process.env,
    ...options.env,
    HONE_STATE_DIR: stateFolder,
    NO_COLOR: "1",
    INIT_CWD: REPOSITORY,
    // The stack ends with this process, even if the test is killed.
    HONE_BOOTSTRAP_PID: String(process.pid),
  };
  const hone = (...args: string[]) =>
    ended(spawn(process.execPath, [COMMAND_LINE, ...args], { env, stdio: ["ignore", "pipe", "pipe"] }));
  const readStack = () => JSON.parse(readFileSync(path.join(stateFolder, "stack.json"), "utf8")) as StackFile;
  const findPid = (name: string): number | undefined => {
    if (name === SUPERVISOR) return readStack().supervisor.pid;
    const pidFile = PID_FILES[name];
    if (pidFile === undefined) return readStack().services[name]?.pid;
    return Number.parseInt(readFileSync(path.join(stateFolder, pidFile), "utf8"), 10) || undefined;
  };
  const pidOf = (name: string): number => findPid(name) ?? assert.fail(`no process of ${name}`);
  /** Starts `hone up` and waits until the stack file names it. */
  const bringUp = async (before?: number) => {
    let ending: Ended | undefined;
    const without = options.without === undefined ? [] : ["--without", options.without.join(",")];
    const counts = Object.entries(options.replicas ?? {}).map(([name, count]) => `${name}=${count}`);
    const replicas = counts.length === 0 ? [] : ["--replicas", counts.join(",")];
    const inProcess = options.isInProcess === true ? ["--in-process"] : [];
    const { inspectPort } = options;
    if (inspectPort !== undefined) inProcess.push("--inspect", "--inspect-port", String(inspectPort));
    const ended = hone("up", ...without, ...replicas, ...inProcess).then((result) => {
      ending = result;
    });
    const isUp = () => ending !== undefined || readStack().supervisor.pid !== before;
    await eventually("the stack to be up", isUp, { deadlineMs: UP_DEADLINE_MS });
    if (ending !== undefined) assert.fail(`hone up ended before it was up:\n${JSON.stringify(ending)}`);
    const { pageUrl, token } = readStack();
    const ownersOf = (server: string) => readFileSync(path.join(stateFolder, server, "owner.url"), "utf8");
    const bus = await connectBus({ url: options.env?.HONE_NATS_URL ?? ownersOf("bus"), name: "test" });
    const databaseUrl = options.env?.HONE_DATABASE_URL ?? ownersOf("database");
    return { bus, sql: postgres(databaseUrl, { max: 2, fetch_types: false }), pageUrl, token, ended };
  };
  const disconnect = async ({ bus, sql }: Pick<TestStack, "bus" | "sql">) => {
    await bus.close();
    await sql.end({ timeout: 5 });
  };
  let current: Awaited<ReturnType<typeof bringUp>>;
  try {
    options.prepare?.(stateFolder);
    current = await bringUp();
  } catch (error) {
    await folder[Symbol.asyncDispose]();
    throw error;
  }
  return {
    get bus() {
      return current.bus;
    },
    get sql() {
      return current.sql;
    },
    get pageUrl() {
      return current.pageUrl;
    },
    get token() {
      return current.token;
    },
    page(path, signal) {
      const headers = { authorization: `Bearer ${current.token}` };
      return fetch(`${current.pageUrl}${path}`, { headers, ...(signal !== undefined && { signal }) });
    },
    stateFolder,
    hone,
    serviceProcesses: () => Object.keys(readStack().services),
    pidOf,
    async kill(name, { whenGone } = {}) {
      const victim = pidOf(name);
      process.kill(victim, "SIGKILL");
      await eventually(`the end of ${name}`, () => !isAlive(victim));
      whenGone?.();
      if (name === SUPERVISOR) {
        await disconnect(current);
        current = await bringUp(victim);
        return;
      }
      const isBack = () => {
        const pid = findPid(name);
        return pid !== undefined && pid !== victim;
      };
      await eventually(`${name} to be back`, isBack, { deadlineMs: UP_DEADLINE_MS });
    },
    async describe() {
      const status = await hone("status");
      const logs = path.join(stateFolder, "logs");
      const ends = readdirSync(logs).map((name) => {
        const lines = readFileSync(path.join(logs, name), "utf8").trimEnd().split("\n");
        return `${name}:\n${lines.slice(-LOG_LINES).join("\n")}`;
      });
      return [status.output, ...ends].join("\n\n");
    },
    async [Symbol.asyncDispose]() {
      await disconnect(current);
      const down = await hone("down");
      await current.ended;
      const refused = busRefusals(stateFolder);
      await folder[Symbol.asyncDispose]();
      assert.equal(down.code, 0, down.output);
      assert.deepEqual(refused, [], "the bus refused no request of a service");
    },
  };
}

/** The refusals of the bus in its log. */
function busRefusals(stateFolder: string): string[] {
  const log = path.join(stateFolder, "nats", "nats-server.log");
  if (!existsSync(log)) return []; // the bus is not the stack's own
  const lines = readFileSync(log, "utf8").split("\n");
  return lines.filter((line) => /Violation/i.test(line)).map((line) => line.replace(/^.*?\[ERR\]/, ""));
}

async function ended(child: ChildProcess): Promise<Ended> {
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk) => {
      output += String(chunk);
    });
  }
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, output };
}
