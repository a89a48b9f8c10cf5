/** Finds the running stack, or starts one. */

import { unreachable } from "@hone/core";
import { type Bus, connectBus } from "@hone/messaging";
import { UsageError } from "../errors.ts";
import type { Session } from "../session.ts";
import { describeReplicas, parseReplicas, REPLICAS_VARIABLE, requireSingle } from "./replicas.ts";
import { pageLink } from "./secrets/http-token.ts";
import { shownBus } from "./shown-bus.ts";
import { type Stack, type StartStackOptions, startStack } from "./stack.ts";
import type { StackEvent } from "./stack-event.ts";
import { readStack, type StackRecord } from "./stack-file.ts";

/** A stack that this session may use. */
export interface UsableStack extends AsyncDisposable {
  /** Whether this session started it, and so ends it. */
  readonly isOwn: boolean;
  readonly natsUrl: string;
  readonly pageUrl: string;
  readonly token: string;
  /** Resolves with the reason when a part of a stack that this session started cannot be restarted. */
  readonly failed: Promise<Error>;
}

const CONNECT_TIMEOUT_MS = 10_000;

/** Options for a stack that this session starts. */
export type OwnStackOptions = Pick<StartStackOptions, "logLevel" | "isInProcess"> & {
  /** @default those of HONE_REPLICAS */
  readonly replicas?: StartStackOptions["replicas"];
};

/** Connects to the bus of a stack. */
export function connectTo(
  stack: { readonly natsUrl: string },
  name: string,
  signal: AbortSignal,
): Promise<Bus> {
  return connectBus({
    url: stack.natsUrl,
    name: `hone ${name}`,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    signal,
  });
}

/**
 * The stack that runs in this project.
 * @throws {UsageError} when there is none.
 */
export function requireStack({ project }: Session): StackRecord {
  const record = readStack(project);
  if (record !== undefined) return record;
  throw new UsageError(`no stack is running in ${project.folder}; start one with hone up`);
}

/** Uses the running stack, or starts one. Disposing it stops the stack only if this session started it. */
export async function useStack(session: Session, options: OwnStackOptions = {}): Promise<UsableStack> {
  const record = readStack(session.project);
  if (record !== undefined && options.isInProcess === true) {
    throw new UsageError(
      `a stack is already running in ${session.project.folder} (process ${record.supervisor.pid}); stop it with hone down to use --in-process`,
    );
  }
  if (record !== undefined) {
    session.terminal.line(`using the running stack (process ${record.supervisor.pid})`);
    const failed = new Promise<never>(() => undefined);
    return {
      isOwn: false,
      natsUrl: record.natsUrl,
      pageUrl: record.pageUrl,
      token: record.token,
      failed,
      [Symbol.asyncDispose]: async () => undefined,
    };
  }
  const stack = await startAndReport(session, options);
  return {
    isOwn: true,
    natsUrl: stack.natsUrl,
    pageUrl: stack.pageUrl,
    token: stack.token,
    failed: stack.failed,
    [Symbol.asyncDispose]: () => stopAndReport(session, stack),
  };
}

/** Starts a stack, with a live line while it starts and its addresses once it is up. */
export async function startAndReport(session: Session, options: OwnStackOptions = {}): Promise<Stack> {
  const { replicas = parseReplicas(process.env[REPLICAS_VARIABLE] ?? "", REPLICAS_VARIABLE), ...rest } =
    options;
  if (options.isInProcess === true) requireSingle(replicas);
  const { terminal, project, signal } = session;
  const startedAt = performance.now();
  terminal.live("starting bus and database …");
  const onEvent = (event: StackEvent) => {
    switch (event.kind) {
      case "progress":
        return terminal.live(`${event.text} …`);
      case "fetching":
        return terminal.line(`${event.text} …`);
      case "restarted": {
        const why = event.reason.split("\n")[0] ?? "";
        return terminal.line(terminal.style("yellow", `${event.name} ended (${why}) and was restarted`));
      }
      default:
        return unreachable(event);
    }
  };
  const stack = await startStack(project, { signal, onEvent, replicas, ...rest });
  terminal.live("");
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  terminal.line(`bus    ${shownBus(project, stack.natsUrl)}`);
  terminal.line(`page   ${terminal.style("cyan", pageLink(stack))}`);
  terminal.line(
    terminal.style(
      "dim",
      `bus, database and six services${describeReplicas(replicas)} are up after ${seconds} s`,
    ),
  );
  return stack;
}

/** Stops a stack; a second Ctrl-C shortens the time that its processes get. */
export async function stopAndReport({ terminal, hurry }: Session, stack: Stack): Promise<void> {
  terminal.live("stopping services, bus and database …");
  const onHurry = () => void stack.stop({ isHurried: true });
  hurry.addEventListener("abort", onHurry, { once: true });
  try {
    await stack.stop();
  } finally {
    hurry.removeEventListener("abort", onHurry);
    terminal.live("");
  }
}
