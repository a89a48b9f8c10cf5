/**
 * Every metric of Hone that Prometheus may read: name, kind, labels, and how figures of several processes become one.
 *
 * Names follow Prometheus: they end with a base unit (`_seconds`, `_bytes`), and with `_total` where a figure only grows.
 * I1: labels are few: services, consumers, outcomes, phases. A run's id is one only where its series end with the run,
 *     and a policy version only where the series are made from what is in flight now.
 */

import { Reduce } from "../semconv.ts";

export interface InstrumentInfo<Label extends string = string> {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly Label[];
  /** How the same series from several processes becomes one. */
  readonly reduce: Reduce;
  /** Upper bounds of a histogram, ascending. */
  readonly bounds?: readonly number[];
}

function counter<const Label extends string = never>(
  name: string,
  help: string,
  labels: readonly Label[] = [],
) {
  return { name, kind: "counter", help, labels, reduce: Reduce.sum } as const;
}

function gauge<const Label extends string = never>(
  name: string,
  help: string,
  labels: readonly Label[] = [],
  reduce: Reduce = Reduce.sum,
) {
  return { name, kind: "gauge", help, labels, reduce } as const;
}

function histogram<const Label extends string = never>(
  name: string,
  help: string,
  bounds: readonly number[],
  labels: readonly Label[] = [],
) {
  return { name, kind: "histogram", help, labels, bounds, reduce: Reduce.sum } as const;
}

/** A call on the bus takes a millisecond, a wait for a service seconds. */
const CALL_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** A rollout of a small model takes a tenth of a second, one with tools minutes. */
const ROLLOUT_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** Steps, and phases of a step. */
const STEP_SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];
const JUDGE_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10];
const ENGINE_STEP_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];

export const Instrument = {
  // Every service
  serviceReady: gauge("hone_service_ready", "Whether the service can do its work now, 1 or 0", ["service"]),

  // The bus. `destination` is noun and verb of the subject, `consumer` a shared consumer's name.
  published: counter("hone_messages_published_total", "Messages that a stream acknowledged", ["destination"]),
  publishFailed: counter("hone_messages_publish_failed_total", "Messages given up before a stream had them", [
    "destination",
  ]),
  consumed: counter("hone_messages_consumed_total", "Messages whose work is done", ["consumer"]),
  redelivered: counter("hone_messages_redelivered_total", "Messages that came for another time", [
    "consumer",
  ]),
  failed: counter("hone_messages_failed_total", "Messages whose work failed and that come again", [
    "consumer",
  ]),
  dead: counter("hone_messages_dead_total", "Messages that could not be decoded", ["consumer"]),
  inWork: gauge("hone_messages_in_work", "Messages that this process works on", ["consumer"]),
  pending: gauge("hone_consumer_pending", "Messages that nobody has taken", ["consumer"], Reduce.max),
  ackPending: gauge(
    "hone_consumer_ack_pending",
    "Messages taken and not acknowledged, over all replicas",
    ["consumer"],
    Reduce.max,
  ),
  requestSeconds: histogram(
    "hone_request_duration_seconds",
    "Requests asked, until their last answer",
    CALL_SECONDS,
    ["destination", "result"],
  ),
  answerSeconds: histogram("hone_answer_duration_seconds", "Requests answered", CALL_SECONDS, [
    "destination",
    "result",
  ]),

  // The sandbox of agent-rollout and the judge. `part` is what runs there: a tool's code, an answer's, the tests of one.
  sandboxProcesses: gauge("hone_sandbox_processes", "Processes that may run a model's code at once", [
    "part",
  ]),
  sandboxTaken: gauge(
    "hone_sandbox_processes_taken",
    "Those that run code, keep a rollout's state, or are started ahead",
    ["part"],
  ),
  sandboxWaiting: gauge("hone_sandbox_waiting", "Runs of a model's code that wait for a process", ["part"]),
  sandboxWaitSeconds: histogram(
    "hone_sandbox_wait_seconds",
    "From a run of a model's code to the process that it got",
    CALL_SECONDS,
    ["part"],
  ),

  // agent-rollout
  rolloutsInFlight: gauge("hone_rollouts_in_flight", "Rollouts at work, by the policy version they may use", [
    "policy_version",
  ]),
  attempts: counter("hone_rollout_attempts_total", "Attempts at rollouts, by how they ended", ["outcome"]),
  rolloutSeconds: histogram(
    "hone_rollout_duration_seconds",
    "From a job's arrival to its episode, by outcome",
    ROLLOUT_SECONDS,
    ["outcome"],
  ),
  retries: counter(
    "hone_retries_total",
    "Calls made again as something outside the agent failed: of tools, of judges, of code whose sandbox was ended",
    ["part"],
  ),

  sessionCalls: counter(
    "hone_session_calls_total",
    "Answered calls of agents outside, by what their messages were to the record",
    ["kind"],
  ),
  swarmEpisodes: gauge(
    "hone_swarm_episodes",
    "Episodes that wait for a client, and those that a client has",
    ["state"],
  ),
  swarmReturns: counter("hone_swarm_returns_total", "Episodes that came back from a client, by why", ["why"]),

  // inference-gateway
  generationsInFlight: gauge(
    "hone_generations_in_flight",
    "Generate requests that are open, by the highest policy version they allow",
    ["policy_version"],
  ),
  engineRunning: gauge("hone_engine_sequences_running", "Sequences in the engine's batch"),
  engineWaiting: gauge("hone_engine_sequences_waiting", "Sequences that wait for a place in the batch"),
  engineBusySeconds: counter(
    "hone_engine_busy_seconds_total",
    "Time in which a generation was open; the rest of the time the engine idled",
  ),
  prefillTokens: counter("hone_engine_prefill_tokens_total", "Prompt tokens computed"),
  cachedTokens: counter("hone_engine_cached_tokens_total", "Prompt tokens whose K/V was there already"),
  sampledTokens: counter("hone_engine_sampled_tokens_total", "Tokens sampled"),
  generationQueueSeconds: histogram(
    "hone_generation_queue_seconds",
    "From a generate request to its first engine step",
    CALL_SECONDS,
  ),
  engineStepSeconds: histogram("hone_engine_step_seconds", "Steps of the engine", ENGINE_STEP_SECONDS),
  engineBatchSize: histogram("hone_engine_batch_size", "Sequences in a step of the engine", BATCH_SIZES),
  policyLoadSeconds: histogram(
    "hone_policy_load_seconds",
    "Loading of a policy version beside the running one",
    STEP_SECONDS,
    ["result"],
  ),

  // judge
  judgeSeconds: histogram("hone_judge_duration_seconds", "Scoring of one episode", JUDGE_SECONDS, [
    "outcome",
  ]),

  // trainer; series with a run end with the run's tenure here
  runPhase: gauge("hone_run_phase", "1 for the phase that a run is in", ["run", "phase"]),
  runVersion: gauge("hone_run_policy_version", "Policy version that serves", ["run"], Reduce.max),
  runSteps: gauge("hone_run_steps", "Steps that the run is to make", ["run"], Reduce.max),
  runWaiting: gauge(
    "hone_run_waiting_seconds",
    "For how long the run waits, by the part that must act",
    ["run", "owner"],
    Reduce.max,
  ),
  runLastStep: gauge(
    "hone_run_last_step_timestamp_seconds",
    "Unix time of the last committed step, or of when this trainer took the run over",
    ["run"],
    Reduce.max,
  ),
  runMismatch: gauge(
    "hone_run_mismatch_mean",
    "Mean difference between the logprobs of sampling and those of training, in the last step",
    ["run"],
    Reduce.max,
  ),
  runGroupsOpen: gauge(
    "hone_run_groups_open",
    "Groups of an asynchronous run that are being played or wait for a later step",
    ["run"],
    Reduce.max,
  ),
  runRolloutsWaiting: gauge(
    "hone_run_rollouts_waiting",
    "Scored rollouts that the trainer holds until it trains their group",
    ["run"],
    Reduce.max,
  ),
  stepSeconds: histogram("hone_step_phase_seconds", "Phases of committed steps", STEP_SECONDS, ["phase"]),
  trainerNodes: gauge(
    "hone_trainer_nodes",
    "Nodes of a trainer of several that are there, its own among them",
  ),
  unreadRollouts: counter(
    "hone_rollouts_unread_total",
    "Rollouts dropped from the bus before the tracer had read them, as it was too far behind",
  ),
  leaseRenewals: counter("hone_lease_renewals_total", "Renewals of the leases of runs", ["result"]),

  // tracer
  spans: counter("hone_spans_total", "Spans received, by what became of them", ["result"]),
  spanPiecesWaiting: gauge("hone_span_pieces_waiting", "Pieces of traces that wait to be stored"),
} as const satisfies Readonly<Record<string, InstrumentInfo>>;
