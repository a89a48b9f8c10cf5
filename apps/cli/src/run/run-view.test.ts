import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type RunEvent, RunEventSchema, RunPhase } from "@hone/proto-gen/run";
import { drawCurve } from "./lines/curve.ts";
import { partsText } from "./lines/part-shares.ts";
import { endLines, evaluationLine, lastStepLine, liveLine, nowText } from "./lines/run-lines.ts";
import { afterEvent, afterState, newRunView, type RunView, timeLeftMs } from "./run-view.ts";

type Kind = MessageInitShape<typeof RunEventSchema>["kind"];

function event(kind: NonNullable<Kind>, timeMs = 0): RunEvent {
  return create(RunEventSchema, { runId: "lake-1", timeMs: BigInt(timeMs), kind });
}

function step(number: number, success: number, timeMs: number): RunEvent {
  const metrics = { success, "reward/mean": success, tokens_per_second: 8_100, episodes_per_second: 210 };
  return event(
    { case: "stepCompleted", value: { step: number, totalSteps: 10, version: number, metrics } },
    timeMs,
  );
}

function evaluated(version: number, success: number): RunEvent {
  return event({
    case: "evaluated",
    value: { version, mode: "sampled", episodes: 1_000, metrics: { success } },
  });
}

const viewOf = (...events: RunEvent[]): RunView => events.reduce(afterEvent, newRunView("lake-1"));

describe("a run's view", () => {
  test("counts an event once, even if it is published again", () => {
    const view = viewOf(
      step(1, 0.2, 0),
      step(2, 0.3, 1_000),
      step(2, 0.3, 1_000),
      evaluated(0, 0.1),
      evaluated(0, 0.1),
    );
    assert.deepEqual(
      view.steps.map((each) => each.step),
      [1, 2],
    );
    assert.equal(view.evaluations.length, 1);
  });

  test("forgets the end of a run that is resumed", () => {
    const ended = (reason: string) =>
      event({ case: "ended", value: { phase: RunPhase.FAILED, reason, checkpoint: "" } });
    const resumed = event({ case: "resumed", value: { resumption: 1 } });
    const again = viewOf(ended("no module"), resumed);
    assert.deepEqual([again.ended, again.phase], [undefined, RunPhase.WAITING]);
    assert.equal(viewOf(ended("no module"), resumed, ended("no disk")).ended?.reason, "no disk");
  });

  test("knows the number of steps from the accepted run file", () => {
    const accepted = event({
      case: "accepted",
      value: { requestSequence: 1n, configJson: '{"trainer":{"steps":150}}' },
    });
    assert.equal(viewOf(accepted).totalSteps, 150);
  });

  test("estimates the time left from the pace of the newest steps", () => {
    assert.equal(timeLeftMs(viewOf(step(1, 0, 0))), undefined);
    assert.equal(timeLeftMs(viewOf(step(1, 0, 0), step(2, 0, 2_000))), 16_000);
  });

  test("leaves out the time in which the stack was down when it estimates the pace", () => {
    const steps = [step(1, 0, 0), step(2, 0, 2_000), step(3, 0, 4_000), step(4, 0, 3_600_000)];
    assert.equal(timeLeftMs(viewOf(...steps)), 12_000);
  });
});

describe("a run's lines", () => {
  test("show step, success, reward, rates and time left", () => {
    assert.equal(
      liveLine(
        viewOf(
          step(1, 0.25, 0),
          step(2, 0.5, 2_000),
          event({ case: "phaseChanged", value: { phase: RunPhase.TRAIN } }),
        ),
      ),
      "step  2/10  success 0.50  reward 0.50  8,100 tokens/s  210 episodes/s  0:16 left  training",
    );
  });

  test("show how old the tokens of an asynchronous run's step are, and how long its trainer and the engines had nothing to do", () => {
    const metrics = {
      success: 0.5,
      "reward/mean": 0.4,
      tokens_per_second: 8_100,
      episodes_per_second: 210,
      "staleness/mean": 0.54,
      "staleness/max": 2,
      "groups/open": 5,
      "groups/too_old": 1,
      "rollouts/waiting": 12,
      "idle/trainer": 0.62,
      "idle/engines": 0.081,
    };
    assert.equal(
      lastStepLine(150, { step: 7, metrics }),
      "step   7/150  success 0.50  reward 0.40  8,100 tokens/s  210 episodes/s  tokens 0.54 versions old, at most 2  5 groups out with 12 scored rollouts, 1 given up  the trainer waited for rollouts 62 % of the time, the engines idled 8 %",
    );
  });

  test("show the deadline that was derived from earlier attempts, and how many rollouts it ended", () => {
    const metrics = { "deadline/ms": 812, "deadline/ended": 3 };
    assert.match(lastStepLine(150, { step: 7, metrics }), /deadline 812 ms, which ended 3$/);
  });

  test("show what the run waits for", () => {
    const waiting = event({
      case: "phaseChanged",
      value: { phase: RunPhase.WAITING, waitingFor: "inference-gateway" },
    });
    assert.equal(nowText(viewOf(waiting)), "waiting for inference-gateway");
  });

  test("show the wait in the run's state until it is accepted, and then what its events say", () => {
    const wait = (waitingFor: string, phase = RunPhase.WAITING) => ({ phase, waitingFor });
    const view = afterState(viewOf(), wait("the download of its model (90 of 270 MB)"));
    assert.equal(nowText(view), "waiting for the download of its model (90 of 270 MB)");
    assert.equal(nowText(afterState(view, wait(""))), "waiting");
    const training = viewOf(event({ case: "phaseChanged", value: { phase: RunPhase.TRAIN } }));
    assert.equal(nowText(afterState(training, wait("its model"))), "training");
  });

  test("show the warm start by rollouts, then by updates", () => {
    const progress = (value: object) => event({ case: "warmStartProgress", value });
    assert.equal(
      nowText(
        viewOf(
          event({ case: "phaseChanged", value: { phase: RunPhase.WARM_START } }),
          progress({ rolloutsDone: 5, rolloutsTotal: 9, loss: Number.NaN }),
        ),
      ),
      "warm start: 5/9 rollouts",
    );
    assert.equal(
      nowText(
        viewOf(
          event({ case: "phaseChanged", value: { phase: RunPhase.WARM_START } }),
          progress({ updatesDone: 2, updatesTotal: 8, loss: 1.5 }),
        ),
      ),
      "warm start: 2/8 updates, loss 1.50",
    );
  });

  test("show held-out success before and after, the curve and the checkpoint", () => {
    const view = viewOf(evaluated(0, 0.2), step(1, 0.2, 0), step(2, 0.8, 1), evaluated(2, 0.78));
    const lines = endLines(view, "runs/lake-1/checkpoints/step-2");
    assert.ok(
      lines.includes(
        "held-out success, sampled  0.20 before (version 0, 1,000 tasks), 0.78 after (version 2, 1,000 tasks)",
      ),
    );
    assert.ok(lines.includes("checkpoint  runs/lake-1/checkpoints/step-2"));
    assert.ok(lines.some((line) => line.includes("█")));
    assert.equal(
      evaluationLine(view.evaluations[1]!),
      "version 2: held-out success 0.78 sampled (1,000 tasks)",
    );
  });
});

describe("partsText()", () => {
  test("shows the success of each part, or its reward where it has no success", () => {
    const metrics = {
      success: 0.5,
      "part/shop/reward/mean": 0.25,
      "part/lake/success": 0.75,
      "part/lake/reward/mean": 0.7,
      "part/lake/groups": 4,
    };
    assert.equal(partsText(metrics), " (lake 0.75, shop 0.25)");
    assert.equal(partsText({ success: 0.5 }), "");
  });

  test("shows six parts, and says how many more there are", () => {
    const metrics = Object.fromEntries(
      ["a", "b", "c", "d", "e", "f", "g"].map((name) => [`part/${name}/success`, 1]),
    );
    assert.match(partsText(metrics), /^ \(a 1\.00, .*f 1\.00, 1 more\)$/);
  });
});

describe("drawCurve()", () => {
  test("fills a column up to its value", () => {
    assert.deepEqual(drawCurve([0, 0.25, 0.5, 1], { width: 4, height: 2 }), ["1.00 ┤   █", "0.50 ┤ ▄██"]);
  });

  test("averages values if there are more than columns", () => {
    assert.deepEqual(drawCurve([0, 1, 1, 1], { width: 2, height: 1 }), ["1.00 ┤▄█"]);
  });

  test("draws nothing without values", () => {
    assert.deepEqual(drawCurve([], { width: 2, height: 1 }), []);
  });
});
