/**
 * The trainer accepts run requests and trains a policy for each.
 *
 * The state of a run is stored in PostgreSQL, JetStream and the state folder. This process keeps nothing that its successor
 * cannot read from there.
 */

import { BucketName, dropRewards, openBucket, runsWithRewards } from "@hone/messaging";
import { specFromConfig } from "@hone/nn";
import { ReplicaStateSchema } from "@hone/proto-gen/policy";
import { RunStateSchema } from "@hone/proto-gen/run";
import { READY, type ServiceDefinition } from "@hone/service-kit";
import type { Logger } from "@hone/telemetry";
import { loadTokenizer } from "@hone/tokenizer";
import { readTrainerConfig, type TrainerServiceConfig } from "./config.ts";
import { createCritic, createEngine, createLearners, createTeachers } from "./create-engine.ts";
import { readChain } from "./db/chain-rows.ts";
import { LedgerRows } from "./db/ledger-rows.ts";
import { migrations } from "./db/migrations.ts";
import { RunRows } from "./db/run-rows.ts";
import { readGradients, readTokens } from "./db/token-rows.ts";
import { Admission } from "./domain/admission/admission.ts";
import { RunSupervisor } from "./domain/run/run-supervisor.ts";
import { loadUserModules, userModuleProblems } from "./domain/run/user-modules.ts";
import { dropWorkOfEndedRuns } from "./domain/run/work-janitor.ts";
import { RunFolders } from "./domain/state/run-folders.ts";
import { teacherKeyProblems } from "./endpoint-teacher.ts";
import { memoryProblems } from "./engine-memory.ts";
import { findModels } from "./find-models.ts";
import { TorchFinder } from "./fsdp/find-torch.ts";
import { TorchNodes } from "./fsdp/torch-nodes.ts";
import { answerLedger } from "./nats/answer-ledger.ts";
import { DatasetClient } from "./nats/dataset-client.ts";
import { EventPublisher } from "./nats/event-publisher.ts";
import { GroupJudgeClient } from "./nats/group-judge-client.ts";
import { JobPublisher } from "./nats/job-publisher.ts";
import { BusPipeline } from "./nats/pipeline.ts";
import { readReplicaTimes } from "./nats/replica-times.ts";
import { respondToControl } from "./nats/run-control.ts";
import { consumeRunRequests } from "./nats/run-requests.ts";
import { RunStateBucket } from "./nats/run-state-board.ts";
import { ScoredReader } from "./nats/scored-reader.ts";
import { ValidateClient } from "./nats/validate-client.ts";

export const trainerService: ServiceDefinition<TrainerServiceConfig> = {
  name: "trainer",
  readConfig: readTrainerConfig,
  async start({ config, bus, logger, openDatabase }) {
    const { stateDir: stateRoot } = config;
    const database = await openDatabase({ schema: "trainer", migrations });
    const registry = new RunRows(database);
    const ledger = new LedgerRows(database);
    const board = new RunStateBucket(await openBucket(bus, BucketName.runState, RunStateSchema));
    const events = new EventPublisher(bus);
    const rollouts = new ScoredReader(bus, logger);
    const jobs = new JobPublisher(bus, tokenizerFinder(stateRoot));
    const replicas = await openBucket(bus, BucketName.replicas, ReplicaStateSchema);
    const nodes = await listenForNodes(config, logger);
    const torch = new TorchFinder(config.torch, nodes);
    const supervisor = new RunSupervisor(
      { owner: config.instanceId, leaseMs: config.leaseMs },
      {
        registry,
        ledger,
        admission: new Admission({
          stateRoot,
          registry,
          board,
          events,
          validators: new ValidateClient(bus),
          models: findModels(config.hub, config.modelFolders),
          engineProblems: async (run, { config: model, others }) => [
            ...memoryProblems(specFromConfig(model), run, config, others),
            ...(await torch.problems(run)),
            ...(await userModuleProblems(run, config.gate)),
            ...teacherKeyProblems(run, config.teacherKeys),
          ],
          logger,
        }),
        tenure: {
          stateRoot,
          ledger,
          jobs,
          rollouts,
          pipeline: new BusPipeline(bus, replicas),
          replicaTimes: readReplicaTimes(replicas, logger),
          tasks: new DatasetClient(bus),
          groupJudges: new GroupJudgeClient(bus),
          userAlgorithms: (run) => loadUserModules(run, config.gate),
          board,
          events,
          createEngine: (run, folders) => createEngine(run, folders, { ...config, torch, logger }),
          createCritic: (run, folders) => createCritic(run, folders, { ...config, torch, logger }),
          createLearners: (run, folders) => createLearners(run, folders, { ...config, torch, logger }),
          createTeachers: (run, folders) => createTeachers(run, folders, { ...config, torch, logger }),
          logger,
        },
        logger,
      },
    );
    supervisor.start();
    const closing = new AbortController();
    const sweeping = dropWorkOfEndedRuns(
      {
        registry,
        jobs,
        rollouts,
        rewards: { runs: () => runsWithRewards(bus), drop: (runId) => dropRewards(bus, runId) },
        logger,
      },
      closing.signal,
    );
    const requests = consumeRunRequests(bus, {
      registry,
      events,
      filesFolder: config.filesDir,
      onRun: () => supervisor.wake(),
      logger,
    });
    const responders = respondToControl(bus, {
      registry,
      board,
      stateRoot,
      onControl: (run) => supervisor.applyControl(run),
      onResumed: (run) => supervisor.takeUp(run.runId),
      logger,
    });
    responders.push(
      answerLedger(bus, {
        readChain: (runId, from) => readChain(database, runId, from),
        readGradients: (runId, step) => readGradients(database, runId, step),
        readTokens: (runId, slot) => readTokens(database, runId, slot),
        logger,
      }),
    );
    return {
      readiness: () => READY,
      drain: async () => {
        await Promise.all([requests.drain(), ...responders.map((responder) => responder.drain())]);
        await supervisor.stop();
      },
      close: async () => {
        closing.abort();
        await requests.stop();
        await supervisor.stop();
        await nodes?.close();
        await sweeping;
      },
    };
  },
};

/** Accepts connections of the other nodes, if the trainer has several. */
async function listenForNodes(
  { torch, httpHost: host }: TrainerServiceConfig,
  logger: Logger,
): Promise<TorchNodes | undefined> {
  if (torch === undefined || torch.nodes === 1) return undefined;
  return TorchNodes.listen({ count: torch.nodes, host, port: torch.nodesPort, logger });
}

/** Finds the tokenizer of a run once and remembers it. */
function tokenizerFinder(stateRoot: string) {
  const known = new Map<string, Promise<{ path: string; digest: string }>>();
  return (runId: string) => {
    let found = known.get(runId);
    if (found === undefined) {
      const folders = new RunFolders(stateRoot, runId);
      found = loadTokenizer(folders.absolute(folders.tokenizer)).then(({ digest }) => ({
        path: folders.tokenizer,
        digest,
      }));
      known.set(runId, found);
      found.catch(() => known.delete(runId));
    }
    return found;
  };
}
