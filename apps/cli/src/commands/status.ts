/** `hone status`: what runs here, and of each run what it does, what it waits for and since when. */

import { create } from "@bufbuild/protobuf";
import { type Bus, RunControl, request, StreamName, subjects } from "@hone/messaging";
import { ControlReplySchema, ControlRequestSchema, RunPhase, type RunState } from "@hone/proto-gen/run";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { span } from "../format.ts";
import { isEnded, runStates } from "../run/follow-run.ts";
import type { Session } from "../session.ts";
import { readStack, type ServiceRecord, stackHolder } from "../stack/stack-file.ts";
import { connectTo, requireStack } from "../stack/use-stack.ts";
import { table } from "../terminal.ts";

const ANSWER_TIMEOUT_MS = 2_000;
const NO_STACK_EXIT_CODE = 3;

export const statusCommand = honeCommand({
  name: "status",
  description: "Tell what runs here, and what each run does, waits for and since when",
  args: {
    run: { type: "positional", required: false, description: "Only this run", valueHint: "RUN" },
  },
  run: async (session, args) => {
    if (readStack(session.project) === undefined) return tellNoStack(session);
    const stack = requireStack(session);
    const bus = await connectTo(stack, "status", session.signal);
    try {
      if (args.run !== undefined) {
        tellRuns(session, [await stateOf(bus, args.run)]);
        return 0;
      }
      const { terminal } = session;
      terminal.line(`up for ${span(Date.now() - stack.startedAtMs)} in process ${stack.supervisor.pid}`);
      terminal.line(`bus    ${stack.natsUrl}`);
      terminal.line(`page   ${terminal.style("cyan", stack.pageUrl)}\n`);
      await tellServices(session, stack.services);
      terminal.line();
      const states = await runStates(bus);
      tellRuns(
        session,
        states.sort((a, b) => Number(isEnded(a.phase)) - Number(isEnded(b.phase))),
      );
      const { state } = await bus.manager.streams.info(StreamName.runs);
      if (state.messages > 0)
        terminal.line(`${state.messages} run requests are not taken yet: they wait for the trainer`);
      return 0;
    } finally {
      await bus.close();
    }
  },
});

function tellNoStack({ terminal, project }: Session): number {
  const holder = stackHolder(project);
  terminal.line(
    holder === undefined
      ? `no stack runs in ${project.folder}`
      : `a stack is starting or ending in process ${holder.pid}`,
  );
  return NO_STACK_EXIT_CODE;
}

async function tellServices(
  { terminal }: Session,
  services: Readonly<Record<string, ServiceRecord>>,
): Promise<void> {
  const rows = await Promise.all(
    Object.entries(services).map(async ([name, { pid, httpPort, restarts }]) => {
      const health = await readiness(httpPort);
      const shown = health === "ready" ? terminal.style("green", health) : terminal.style("yellow", health);
      return [
        name,
        shown,
        `process ${pid}`,
        `port ${httpPort}`,
        restarts > 0 ? `started again ${restarts} times` : "",
      ];
    }),
  );
  for (const line of table(rows)) terminal.line(line);
}

async function readiness(port: number): Promise<string> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`, {
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    const { ready, reasons } = (await response.json()) as { ready: boolean; reasons: readonly string[] };
    return ready ? "ready" : reasons.join("; ");
  } catch {
    return "does not answer"; // down, or being started again: that is the status
  }
}

async function stateOf(bus: Bus, runId: string): Promise<RunState> {
  const reply = await request(
    bus,
    subjects.runControl(RunControl.status, runId),
    ControlRequestSchema,
    create(ControlRequestSchema, { runId }),
    ControlReplySchema,
    { timeoutMs: ANSWER_TIMEOUT_MS },
  );
  if (reply.state === undefined) throw new UsageError(reply.error);
  return reply.state;
}

function tellRuns({ terminal }: Session, states: readonly RunState[]): void {
  if (states.length === 0) terminal.line("no runs");
  const rows = states.map((state) => {
    const waits =
      state.waitingFor === ""
        ? ""
        : `waits for ${state.waitingFor} since ${span(Date.now() - Number(state.waitingSinceMs))}`;
    return [
      terminal.style("bold", state.runId),
      phaseName(state.phase),
      `step ${state.version}/${state.totalSteps}`,
      waits,
    ];
  });
  for (const line of table(rows)) terminal.line(line);
}

function phaseName(phase: RunPhase): string {
  return (
    Object.entries(RunPhase)
      .find(([, value]) => value === phase)?.[0]
      ?.toLowerCase()
      .replaceAll("_", " ") ?? String(phase)
  );
}
