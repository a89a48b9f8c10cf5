/**
 * Composition root of agent-rollout, which takes jobs, asks replicas of the policy and publishes episodes.
 *
 * Drain: no new job is taken, and the jobs in work end, but for those that wait for a client: they go back at once. Jobs that are still in work when the time is over go back to the
 * queue at once, for another process.
 */

import { BusPolicy, ReplicaDirectory } from "@hone/agents";
import {
  BucketName,
  openBucket,
  REPLICA_TTL_MS,
  respond,
  subjects,
  ValidatingService,
} from "@hone/messaging";
import { RenderReplySchema, RenderRequestSchema } from "@hone/proto-gen/rollout";
import { RunStateSchema, ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import {
  type HttpHandler,
  READY,
  type Service,
  type ServiceContext,
  type ServiceDefinition,
} from "@hone/service-kit";
import { type AgentRolloutConfig, readConfig } from "./config.ts";
import { SessionHost } from "./domain/sessions/session-host.ts";
import { EpisodePool } from "./domain/swarm/episode-pool.ts";
import { Tokenizers } from "./domain/tokenizers.ts";
import { type EpisodeRoutesOptions, episodeRoutes } from "./http/episode-routes.ts";
import { type SessionRoutesOptions, sessionRoutes } from "./http/session-routes.ts";
import { ActiveRuns } from "./nats/active-runs.ts";
import { renderer } from "./nats/answer-render.ts";
import { answerValidate } from "./nats/answer-validate.ts";
import { consumeJobs } from "./nats/consume-jobs.ts";
import { BusLaterRewards } from "./nats/later-rewards.ts";
import { rowsOfRun } from "./nats/rows-of-run.ts";
import { watchReplicas } from "./nats/watch-replicas.ts";
import { openRolloutParts } from "./open-rollout-parts.ts";

export const agentRolloutService: ServiceDefinition<AgentRolloutConfig> = {
  name: "agent-rollout",
  readConfig,
  start,
};

async function start(context: ServiceContext<AgentRolloutConfig>): Promise<Service> {
  const { bus, config, logger, http } = context;
  const closed = new AbortController();
  const replicas = new ReplicaDirectory(REPLICA_TTL_MS);
  await watchReplicas(bus, replicas, { signal: closed.signal, logger });
  const runs = await ActiveRuns.watch(bus, logger);
  const tokenizers = new Tokenizers(config.stateDir);
  const parts = openRolloutParts(config);
  // Attempts before this process may have left containers behind. A runtime that does not answer stops no other work.
  parts.containers?.sweep().then(
    (numRemoved) => logger.info("containers of earlier processes were removed", { numRemoved }),
    (error: unknown) => logger.warn("containers of earlier processes could not be removed", { error }),
  );
  const publicUrl = config.sessionUrl ?? http.url;
  const sessions = new SessionHost(publicUrl);
  const episodes = new EpisodePool(publicUrl);
  const laterRewards = await BusLaterRewards.open(bus);
  const validator = respond(
    bus,
    subjects.validate(ValidatingService.agentRollout),
    ValidateRequestSchema,
    ValidateReplySchema,
    {
      queue: "agent-rollout",
      handle: async ({ message, reply }) =>
        reply(await answerValidate(message, { ...parts, rowsOf: (run) => rowsOfRun(bus, run) })),
      onError: (error, subject) => logger.error("a request could not be answered", { subject, error }),
    },
  );
  const answerRender = renderer({
    modules: parts.modules,
    states: await openBucket(bus, BucketName.runState, RunStateSchema),
  });
  const painter = respond(bus, subjects.rolloutRender(), RenderRequestSchema, RenderReplySchema, {
    queue: "agent-rollout",
    handle: async ({ message, reply }) => reply(await answerRender(message)),
    onError: (error, subject) => logger.error("a request could not be answered", { subject, error }),
  });
  const consumer = consumeJobs(bus, {
    runs,
    episodes,
    logger,
    concurrency: config.concurrency,
    dependencies: {
      ...parts,
      rendererOf: (job) => tokenizers.rendererOf(job),
      sessions,
      policy: new BusPolicy(bus, replicas, {
        idleTimeoutMs: config.policyIdleTimeoutMs,
        onRetry: (reason, call) =>
          logger.debug("a model call is tried again", { call: call.requestId, reason }),
      }),
    },
  });
  return {
    routes: outsideRoutes({
      sessions,
      episodes,
      laterRewards,
      logger,
      swarmKey: config.swarmKey,
      stateOf: (run) => runs.stateOf(run),
    }),
    ...(config.sessionUrl !== undefined && { hosts: [new URL(config.sessionUrl).hostname] }),
    readiness: () => READY,
    async drain(signal) {
      episodes.drain();
      const drained = Promise.all([consumer.drain(), validator.drain(), painter.drain()]);
      const isOver = Promise.withResolvers<void>();
      const onAbort = () => isOver.resolve();
      signal.addEventListener("abort", onAbort, { once: true });
      await Promise.race([drained, isOver.promise]);
      signal.removeEventListener("abort", onAbort);
    },
    async close() {
      closed.abort();
      // Jobs are given back first; after that it does not matter how their rollouts end.
      await consumer.stop();
      runs.stop();
      episodes.close();
      await parts[Symbol.asyncDispose]();
    },
  };
}

/** The sessions of agents outside, and the episodes that clients ask for. */
function outsideRoutes(options: EpisodeRoutesOptions & SessionRoutesOptions): HttpHandler {
  const sessions = sessionRoutes(options);
  const episodes = episodeRoutes(options);
  return {
    fetch(request, env) {
      const isOfEpisodes = /^\/(runs|episodes)(\/|$)/.test(new URL(request.url).pathname);
      return (isOfEpisodes ? episodes : sessions).fetch(request, env);
    },
  };
}
