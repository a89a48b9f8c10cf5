/** Asks services over a real bus whether they would accept a run. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { respond, respondToHealth, ServiceName, subjects } from "@hone/messaging";
import { startBus, type TestBus } from "@hone/messaging/testing";
import { ProblemSchema, ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import { dryRun } from "./dry-run.ts";

const RUN = { configJson: '{"name":"tiny"}' };
const { judge, trainer } = ServiceName;
const fail = (error: unknown) => {
  throw error;
};

describe("dryRun()", () => {
  let bus: TestBus;
  before(async () => {
    bus = await startBus();
  });
  after(() => bus?.close());

  const ask = (services: readonly ServiceName[], waitMs = 0) =>
    dryRun(bus, RUN, { services, waitMs, signal: new AbortController().signal });

  /** Answers requests for health as a service does. */
  const health = (service: ServiceName, reasonsOf: () => string[]) =>
    respondToHealth(
      bus,
      service,
      async () => {
        const reasons = reasonsOf();
        return { instanceId: `${service}-0`, isReady: reasons.length === 0, reasons };
      },
      fail,
    );
  /** Answers requests to validate a run as a judge does. */
  const validate = (problems: readonly string[]) =>
    respond(bus, subjects.validate(judge), ValidateRequestSchema, ValidateReplySchema, {
      handle: async ({ message, reply }) => {
        assert.equal(message.configJson, RUN.configJson);
        const found = problems.map((message) =>
          create(ProblemSchema, { key: "judge", valueJson: "null", allowed: "another", message }),
        );
        await reply(create(ValidateReplySchema, { service: judge, problems: found }));
      },
      onError: fail,
    });

  test("a service is ready if it reports good health and validates the run without a problem", async () => {
    const answering = [health(judge, () => []), health(trainer, () => []), validate([])];
    assert.deepEqual(await ask([judge, trainer]), [
      { service: judge, waitsFor: [], problems: [] },
      { service: trainer, waitsFor: [], problems: [] },
    ]);
    await Promise.all(answering.map((each) => each.drain()));
  });

  test("reports services that are silent, that do not validate, or that wait for something", async () => {
    const answering = [health(judge, () => []), health(trainer, () => ["database: connecting"])];
    assert.deepEqual(await ask([ServiceName.tracer, judge, trainer]), [
      { service: ServiceName.tracer, waitsFor: ["does not answer"], problems: [] },
      { service: judge, waitsFor: ["does not answer"], problems: [] },
      { service: trainer, waitsFor: ["trainer-0: database: connecting"], problems: [] },
    ]);
    await Promise.all(answering.map((each) => each.drain()));
  });

  test("waits until services are ready", async () => {
    let looks = 0;
    const answering = health(trainer, () => (++looks < 2 ? ["bus: connecting"] : []));
    assert.deepEqual(await ask([trainer], 30_000), [{ service: trainer, waitsFor: [], problems: [] }]);
    assert.equal(looks, 2);
    await answering.drain();
  });

  test("returns a refusal at once, even if it could wait longer for other services", async () => {
    const answering = [health(judge, () => []), validate(["the judge is not there"])];
    const began = performance.now();
    const [answer] = await ask([judge], 60_000);
    assert.ok(performance.now() - began < 30_000);
    assert.match(answer?.problems.join() ?? "", /the judge is not there/);
    await Promise.all(answering.map((each) => each.drain()));
  });
});
