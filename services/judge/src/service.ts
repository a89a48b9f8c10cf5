/**
 * The judge takes finished episodes and publishes scored ones.
 *
 * It has no state. Replicas share one durable consumer, and the episodes of one that dies are delivered to another. Rollouts that
 * wait for rewards are kept on the bus (nats/rewards/).
 */

import { MeasuredSandbox, READY, type ServiceDefinition } from "@hone/service-kit";
import { type JudgeServiceConfig, readJudgeConfig } from "./config.ts";
import { TestRunners } from "./domain/judges/python/test-runners.ts";
import { consumeEpisodes } from "./nats/consume-episodes.ts";
import { keepDeadlines } from "./nats/rewards/keep-deadlines.ts";
import { OpenRollouts } from "./nats/rewards/open-rollouts.ts";
import { RunPanels } from "./nats/run-panels.ts";
import { serveJudge } from "./nats/serve.ts";

export const judgeService: ServiceDefinition<JudgeServiceConfig> = {
  name: "judge",
  readConfig: readJudgeConfig,
  async start({ config, bus, logger }) {
    const stopping = new AbortController();
    const { signal } = stopping;
    const processes = { maxProcesses: config.sandboxProcesses };
    const sandbox = new MeasuredSandbox("answer", processes);
    const testRunners = new TestRunners(new MeasuredSandbox("test", processes));
    const panels = await RunPanels.open(bus, { ...config, sandbox, testRunners });
    const rollouts = await OpenRollouts.open(bus);
    const responders = serveJudge(bus, panels, { logger, rollouts, signal });
    const { concurrency } = config;
    const consumer = consumeEpisodes(bus, panels, { logger, concurrency, rollouts, signal });
    const keeping = keepDeadlines(bus, rollouts, { logger, signal });
    return {
      readiness: () => READY,
      drain: async () => {
        await Promise.all([consumer.drain(), ...responders.map((responder) => responder.drain())]);
      },
      // Gives back the episodes that are still in work when the drain was cut short.
      close: async () => {
        await consumer.stop();
        stopping.abort();
        await keeping;
        await Promise.all([sandbox.close(), testRunners.close()]);
      },
    };
  },
};
