/** `hone status`: shows which processes are ready, and for each run what it does, what it waits for, since when, and who has to act. */

import { create } from "@bufbuild/protobuf";
import {
  BucketName,
  type Bus,
  decodeBytes,
  EventKind,
  latestMessage,
  openBucket,
  RunControl,
  readDeadLetters,
  request,
  StreamName,
  subjects,
  unreadRollouts,
} from "@hone/messaging";
import {
  ControlReplySchema,
  ControlRequestSchema,
  RunEventSchema,
  RunPhase,
  type RunState,
  RunStateSchema,
} from "@hone/proto-gen/run";
import { reasonLine } from "@hone/rl";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { span } from "../format.ts";
import { isEnded, runStates } from "../run/follow-run.ts";
import { lastStepLine } from "../run/lines/run-lines.ts";
import { troubleLines } from "../run/lines/trouble-lines.ts";
import type { Session } from "../session.ts";
import { askStack, type PartHealth, type StackHealth } from "../stack/health/part-health.ts";
import { readQueueLine } from "../stack/health/queue-line.ts";
import { serviceWaits } from "../stack/health/service-waits.ts";
import { replicasOf } from "../stack/replicas.ts";
import { pageLink } from "../stack/secrets/http-token.ts";
import { shownBus } from "../stack/shown-bus.ts";
import { readStack, type StackRecord, stackHolder } from "../stack/stack-file.ts";
import { connectTo, requireStack } from "../stack/use-stack.ts";
import { table } from "../terminal.ts";

const ANSWER_TIMEOUT_MS = 2_000;
const NO_STACK_EXIT_CODE = 3;
/** Most characters of the reason why a run ended. */
const MAX_REASON = 1_000;

export const statusCommand = honeCommand({
  name: "status",
  description:
    "Show the state of the stack and of each run: what it does, or what it waits for and since when",
  args: {
    run: {
      type: "positional",
      required: false,
      description: "Id of a run; all by default",
      valueHint: "RUN",
    },
  },
  run: async (session, args) => {
    if (readStack(session.project) === undefined) return printNoStack(session);
    const stack = requireStack(session);
    const health = await askStack(stack);
    if (args.run === undefined) printParts(session, stack, health, await waitsOf(stack));
    const bus = health.get("nats-server");
    if (bus?.kind === "silent") {
      session.terminal.line(`the runs cannot be shown: the bus ${silence(bus)}`);
      return 0;
    }
    await printRunsOnBus(session, stack, health, args.run);
    return 0;
  },
});

function printNoStack({ terminal, project }: Session): number {
  const holder = stackHolder(project);
  terminal.line(
    holder === undefined
      ? `no stack is running in ${project.folder}`
      : `a stack is starting or stopping in process ${holder.pid}`,
  );
  return NO_STACK_EXIT_CODE;
}

/** For each process that runs sandboxes or lends episodes, what waits there. */
async function waitsOf({ services }: StackRecord): Promise<ReadonlyMap<string, string>> {
  const hosts = Object.entries(services).filter(([name]) => /^(agent-rollout|judge)/.test(name));
  const waits = hosts.map(
    async ([name, { httpPort }]) => [name, await serviceWaits(name, httpPort)] as const,
  );
  return new Map(await Promise.all(waits));
}

function printParts(
  { terminal, project }: Session,
  stack: StackRecord,
  health: StackHealth,
  waits: ReadonlyMap<string, string>,
): void {
  const shown = (name: string): string => {
    const part = health.get(name);
    if (part === undefined || part.kind === "ready") return terminal.style("green", "ready");
    return terminal.style("yellow", part.kind === "silent" ? silence(part) : part.reasons.join("; "));
  };
  terminal.line(`up for ${span(Date.now() - stack.startedAtMs)} in process ${stack.supervisor.pid}`);
  terminal.line(`page  ${terminal.style("cyan", pageLink(stack))}\n`);
  const rows = [
    ["bus", shown("nats-server"), shownBus(project, stack.natsUrl)],
    ["database", shown("postgres")],
    ...replicasOf(stack.replicas).map(({ name }) => {
      const own = stack.services[name];
      if (own === undefined) return [name, terminal.style("yellow", "is being restarted")];
      const { pid, httpPort, restarts } = own;
      const again = restarts > 0 ? `restarted ${restarts} times` : "";
      const notes = [again, waits.get(name) ?? ""].filter((note) => note !== "").join("; ");
      return [name, shown(name), `process ${pid}`, `port ${httpPort}`, notes];
    }),
  ];
  for (const line of table(rows)) terminal.line(line);
  terminal.line();
}

async function printRunsOnBus(
  session: Session,
  stack: StackRecord,
  health: StackHealth,
  runId: string | undefined,
): Promise<void> {
  const { terminal } = session;
  const bus = await connectTo(stack, "status", session.signal);
  try {
    const trainer = trainerHealth(stack, health);
    const unread = await unreadRollouts(bus);
    const states = runId === undefined ? await runStates(bus) : [await stateOf(bus, runId)];
    states.sort((a, b) => Number(isEnded(a.phase)) - Number(isEnded(b.phase)));
    printRuns(session, states, { trainer, unread, lastSteps: await lastSteps(bus, states) });
    if (runId !== undefined) return;
    const queues = await readQueueLine(bus);
    if (queues !== undefined) terminal.line(queues);
    const { state } = await bus.manager.streams.info(StreamName.runs);
    if (state.messages > 0) terminal.line(`${state.messages} run requests wait for a trainer to take them`);
    const { count, last } = await readDeadLetters(bus);
    if (last !== undefined)
      terminal.line(`${count} messages could not be decoded, the last on ${last.subject}: ${last.reason}`);
  } finally {
    await bus.close();
  }
}

/** The health of a trainer that answers if there is one, because it takes over the runs of one that does not. */
function trainerHealth({ replicas }: StackRecord, health: StackHealth): PartHealth | undefined {
  const trainers = replicasOf(replicas).filter(({ service }) => service === "trainer");
  const parts = trainers.map(({ name }) => health.get(name));
  return parts.find((part) => part?.kind !== "silent") ?? parts[0];
}

/** A run's published state. A run that has none yet is asked of the trainer. */
async function stateOf(bus: Bus, runId: string): Promise<RunState> {
  const bucket = await openBucket(bus, BucketName.runState, RunStateSchema);
  const published = await bucket.get(runId);
  if (published !== undefined) return published.value;
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

/** The last committed step of each run that goes on, as a line. */
async function lastSteps(bus: Bus, states: readonly RunState[]): Promise<ReadonlyMap<string, string>> {
  const lines = states
    .filter(({ phase }) => !isEnded(phase))
    .map(async ({ runId, totalSteps }) => {
      const message = await latestMessage(bus, StreamName.events, subjects.event(runId, EventKind.step));
      if (message === undefined) return [];
      const { kind } = decodeBytes(RunEventSchema, message.data, message.subject);
      return kind.case === "stepCompleted" ? [[runId, lastStepLine(totalSteps, kind.value)] as const] : [];
    });
  return new Map((await Promise.all(lines)).flat());
}

/** What is shown of runs beside their states. */
interface ShownWithRuns {
  readonly trainer: PartHealth | undefined;
  readonly unread: ReadonlyMap<string, number>;
  readonly lastSteps: ReadonlyMap<string, string>;
}

function printRuns(
  { terminal }: Session,
  states: readonly RunState[],
  { trainer, unread, lastSteps }: ShownWithRuns,
): void {
  if (states.length === 0) terminal.line("no runs");
  const rows = states.map((state) => [
    terminal.style("bold", state.runId),
    phaseName(state.phase),
    `step ${state.version}/${state.totalSteps}`,
    waitOf(state, trainer),
  ]);
  for (const [index, line] of table(rows).entries()) {
    terminal.line(line);
    const lastStep = lastSteps.get(states[index]?.runId ?? "");
    if (lastStep !== undefined) terminal.line(`  ${lastStep}`);
    for (const note of notesOf(states[index], unread)) terminal.line(terminal.style("yellow", `  ${note}`));
  }
}

/** Why the run ended, what cannot be shown, and what went wrong in the rollouts that were collected last. */
function notesOf(state: RunState | undefined, unread: ReadonlyMap<string, number>): string[] {
  if (state === undefined) return [];
  const { troubles, endReason } = state;
  const ended = endReason === "" ? [] : [reasonLine(endReason, MAX_REASON)];
  if (state.phase === RunPhase.FAILED) ended.push(`once the cause is fixed: hone resume ${state.runId}`);
  const missing = unread.get(state.runId);
  if (missing !== undefined)
    ended.push(`${missing} rollouts are missing on the page, because the tracer was too far behind`);
  if (troubles === undefined) return ended;
  return [...ended, ...troubleLines(troubles).map((line) => `${reasonLine(troubles.madeFor)}: ${line}`)];
}

/** What the run waits for. If no trainer answers, its last published state is outdated, and the run waits for the trainer. */
function waitOf(state: RunState, trainer: PartHealth | undefined): string {
  if (isEnded(state.phase)) return "";
  if (trainer?.kind === "silent")
    return `waits for the trainer, which ${silence(trainer)} (${ownerText("trainer")})`;
  const { waitingFor, waitingOwner, waitingSinceMs } = state;
  if (waitingFor === "") return "";
  const since = waitingSinceMs === 0n ? "" : ` since ${span(Date.now() - Number(waitingSinceMs))}`;
  return `waits for ${waitingFor}${since}${waitingOwner === "" ? "" : ` (${ownerText(waitingOwner)})`}`;
}

/** @returns who must act for the run to continue, in the words of the page: "waiting for the judge". */
function ownerText(owner: string): string {
  if (owner === "you" || owner.includes("-")) return `waiting for ${owner}`;
  return owner === "dataset" ? "waiting for the dataset service" : `waiting for the ${owner}`;
}

function silence({ sinceMs }: Extract<PartHealth, { kind: "silent" }>): string {
  return sinceMs === undefined ? "does not answer" : `does not answer since ${span(Date.now() - sinceMs)}`;
}

function phaseName(phase: RunPhase): string {
  return (
    Object.entries(RunPhase)
      .find(([, value]) => value === phase)?.[0]
      ?.toLowerCase()
      .replaceAll("_", " ") ?? String(phase)
  );
}
