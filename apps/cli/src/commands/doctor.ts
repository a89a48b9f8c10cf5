/** `hone doctor`: checks everything that a stack needs on this machine, and says how to fix what is missing. */

import { access, constants, mkdir, statfs } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import { describeError } from "@hone/core";
import { findNatsServer, findPostgres, freePort, postgresAccount } from "@hone/embedded";
import { defaultProcesses, kernelWalls, ownSnapshots } from "@hone/sandbox";
import { measureEightBits } from "@hone/tensor";
import { honeCommand } from "../define.ts";
import { span } from "../format.ts";
import type { Session } from "../session.ts";
import { readStack, stackHolder } from "../stack/stack-file.ts";
import { table } from "../terminal.ts";

/** The result of a check; `warn`: it works, but not as well as it could. */
interface Finding {
  readonly state: "ok" | "warn" | "bad";
  readonly text: string;
}

const OLDEST_NODE = 24;
/** Bus, database and six services with a small model. */
const MIN_MEMORY_GIB = 3;
/** Weights, episodes and logs of a few runs. */
const MIN_DISK_GIB = 2;
const GIB = 1024 ** 3;
/** Rounding rows and scaling results take the rest. */
const MIN_GAIN = 1.5;

const CHECKS: Readonly<Record<string, (session: Session) => Promise<Finding>>> = {
  Node: async () => {
    const isNewEnough = Number(process.versions.node.split(".")[0]) >= OLDEST_NODE;
    return isNewEnough
      ? ok(process.version)
      : bad(`${process.version}: version ${OLDEST_NODE} or newer is needed; npm run hone uses one`);
  },
  processor: async () => {
    const cores = availableParallelism();
    const text = `${cores} cores, ${process.arch}`;
    return cores >= 2 ? ok(text) : warn(`${text}: training and sampling have to share it`);
  },
  "eight bits": async () => {
    const { type, ratio } = await measureEightBits();
    const text = `products ${ratio.toFixed(1)} times as fast as in float32, weights as ${type}`;
    return ratio >= MIN_GAIN
      ? ok(text)
      : ok(`${text}: rollout.quantization saves memory here, and little time`);
  },
  memory: async () => {
    const gib = totalmem() / GIB;
    const text = `${gib.toFixed(1)} GiB`;
    return gib >= MIN_MEMORY_GIB ? ok(text) : warn(`${text}: ${MIN_MEMORY_GIB} GiB or more is better`);
  },
  "state folder": async ({ project }) => {
    try {
      await mkdir(project.state, { recursive: true });
      await access(project.state, constants.W_OK);
    } catch (error) {
      return bad(`${project.state} cannot be written by this account: ${describeError(error)}`);
    }
    const { bavail, bsize } = await statfs(project.state);
    const gib = (bavail * bsize) / GIB;
    const text = `${project.state}, ${gib.toFixed(1)} GiB free`;
    return gib >= MIN_DISK_GIB ? ok(text) : warn(`${text}: ${MIN_DISK_GIB} GiB or more is better`);
  },
  ports: async () => ok(`port ${await freePort()} and others are free on the loopback address`),
  "nats-server": async ({ project, signal }) => {
    if (process.env.HONE_NATS_URL) return ok("not needed, as HONE_NATS_URL is set");
    const { path, version } = await findNatsServer({
      fallbackCacheDir: join(project.state, "nats", "cache"),
      signal,
    });
    return ok(`${version}, ${path}`);
  },
  PostgreSQL: async ({ project }) => {
    if (process.env.HONE_DATABASE_URL) return ok("not needed, as HONE_DATABASE_URL is set");
    const account = await postgresAccount();
    const version = await findPostgres(account, join(project.state, "postgres", "programs"));
    return ok(
      account === undefined ? version : `${version}, run as account ${account.uid} (PostgreSQL refuses root)`,
    );
  },
  sandbox: async () => {
    // Throws if this machine has no runtime for code that a model writes.
    const { names, reason } = await kernelWalls();
    const processes = `${defaultProcesses()} processes`;
    const problem = await ownSnapshots().problem();
    const lacks = [
      ...(names.length > 0 ? [] : [`the kernel does not confine its processes: ${reason}`]),
      ...(problem === undefined
        ? []
        : [`the first Python program of each service takes seconds to start: ${problem}`]),
    ];
    const walls = names.length > 0 ? `, and the kernel's ${names.join(", ")}` : " alone";
    const text = [`Deno without permissions${walls}; ${processes}`, ...lacks].join("\n");
    return lacks.length === 0 ? ok(text) : warn(text);
  },
  stack: async ({ project }) => {
    const stack = readStack(project);
    if (stack !== undefined)
      return ok(`up for ${span(Date.now() - stack.startedAtMs)}, page ${stack.pageUrl}`);
    return ok(stackHolder(project) === undefined ? "not running" : "starting or stopping");
  },
};

export const doctorCommand = honeCommand({
  name: "doctor",
  description: "Check whether this machine has what a stack needs",
  args: {},
  run: async (session) => {
    const { terminal } = session;
    const rows: string[][] = [];
    let numBad = 0;
    for (const [name, check] of Object.entries(CHECKS)) {
      terminal.live(`checking ${name} …`);
      const { state, text } = await check(session).catch((error: unknown) => bad(describeError(error)));
      if (state === "bad") numBad++;
      const style = state === "ok" ? "green" : state === "warn" ? "yellow" : "red";
      const [first = "", ...more] = text.split("\n");
      rows.push([terminal.style(style, state), name, first], ...more.map((line) => ["", "", line]));
    }
    terminal.live("");
    for (const line of table(rows)) terminal.line(line);
    return numBad === 0 ? 0 : 1;
  },
});

function ok(text: string): Finding {
  return { state: "ok", text };
}

function warn(text: string): Finding {
  return { state: "warn", text };
}

function bad(text: string): Finding {
  return { state: "bad", text };
}
