import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { freePort } from "@hone/embedded";
import { connectInspector, eventually } from "@hone/testing";
import { lakeRun } from "../support/lake-run.ts";
import { REPOSITORY, SERVICES, startStack, type TestStack } from "../support/stack.ts";

/* The six services in one process, for a debugger: a run trains as on six processes, and its traces distinguish them. */

const RUN = {
  name: "together",
  steps: 2,
  tasksPerStep: 2,
  minibatches: 1,
  warmStartTasks: 8,
  evalTasks: 2,
};
/** The services that create spans; the tracer only stores them. */
const SPEAKING = ["agent-rollout", "dataset", "inference-gateway", "judge", "trainer"];
const WAIT_MS = 60_000;
const JUDGE = path.join(REPOSITORY, "services", "judge", "src", "domain", "judges", "environment.ts");
const JUDGE_LINE = "return { value: environmentReturn";

describe("a stack in one process", () => {
  let stack: TestStack;
  let inspectPort: number;
  before(async () => {
    inspectPort = await freePort();
    stack = await startStack({ isInProcess: true, inspectPort });
  });
  after(() => stack?.[Symbol.asyncDispose]());

  test("is one process", () => {
    const pids = SERVICES.map((name) => stack.pidOf(name));
    assert.deepEqual([...new Set(pids)], [stack.pidOf("supervisor")]);
  });

  test("its services each check their part of a run file", async () => {
    const file = path.join(stack.stateFolder, "checked.json");
    const run = await lakeRun({ ...RUN, name: "checked" });
    await writeFile(file, JSON.stringify(run));
    const sound = await stack.hone("validate", file);
    assert.equal(sound.code, 0, sound.output);
    for (const part of ["model", "memory", "dataset", "agent-rollout", "judge", "inference-gateway"]) {
      assert.match(sound.output, new RegExp(`ok +${part} `));
    }
    await writeFile(file, JSON.stringify({ ...run, agent: { name: "frozen_lak" } }));
    const wrong = await stack.hone("validate", file);
    assert.equal(wrong.code, 1);
    assert.match(wrong.output, /agent\.name.*did you mean "frozen_lake".*wrong +agent-rollout/s);
  });

  test("stops at a breakpoint in a judge, and continues afterwards", async () => {
    const [target] = (await (await fetch(`http://127.0.0.1:${inspectPort}/json/list`)).json()) as {
      webSocketDebuggerUrl: string;
    }[];
    using inspector = await connectInspector(target?.webSocketDebuggerUrl ?? "");
    const url = pathToFileURL(JUDGE).href;
    const lines = (await readFile(JUDGE, "utf8")).split("\n");
    const remove = await inspector.breakAt(
      url,
      lines.findIndex((line) => line.includes(JUDGE_LINE)),
    );
    const file = path.join(stack.stateFolder, "halted.json");
    await writeFile(
      file,
      JSON.stringify(await lakeRun({ ...RUN, name: "halted", steps: 1, warmStartTasks: 8 })),
    );
    const running = stack.hone("run", file);
    const halt = await inspector.nextHalt();
    assert.deepEqual([halt.url, lines[halt.lineNumber]?.includes(JUDGE_LINE)], [url, true]);
    await remove();
    await inspector.resume();
    const run = await running;
    assert.equal(run.code, 0, run.output);
  });

  test("trains, and each span has the name of its service", async () => {
    const file = path.join(stack.stateFolder, "together.json");
    await writeFile(file, JSON.stringify(await lakeRun(RUN)));
    const run = await stack.hone("run", file);
    assert.equal(run.code, 0, `${run.output}\n${await stack.describe()}`);
    const services = await eventually(
      "spans of every service",
      async () => {
        const traces = await stack.sql<
          { id: string }[]
        >`select distinct trace_id as id from tracer.span_pieces`;
        const found = new Map<string, Set<string>>();
        const messaging = new Map<string, Record<string, unknown>>();
        for (const { id } of traces) {
          const answer = await stack.page(`/api/traces/${id}`);
          const { spans } = (await answer.json()) as {
            spans: { name: string; service: string; attributes: Record<string, unknown> }[];
          };
          for (const { name, service, attributes } of spans) {
            const first = name.split(" ", 1)[0] ?? "";
            found.set(first, (found.get(first) ?? new Set()).add(service));
            if (attributes["messaging.system"] === "nats") messaging.set(first, attributes);
          }
        }
        const all = [...new Set([...found.values()].flatMap((each) => [...each]))].sort();
        return all.length >= SPEAKING.length && { all, found, messaging };
      },
      { deadlineMs: WAIT_MS },
    );
    assert.deepEqual(services.all, SPEAKING);
    for (const [name, service] of [
      ["invoke_agent", "agent-rollout"],
      ["judge", "judge"],
      ["step", "trainer"],
    ] as const) {
      assert.deepEqual([...(services.found.get(name) ?? [])], [service], name);
    }
    // Spans of sending and processing messages follow OpenTelemetry's conventions.
    const { messaging } = services;
    assert.deepEqual([...messaging.keys()].sort(), ["judge", "rollout"]);
    assert.equal(messaging.get("rollout")?.["messaging.operation.type"], "send");
    assert.equal(messaging.get("rollout")?.["messaging.destination.template"], "hone.v1.rollout.job.*");
    assert.equal(messaging.get("judge")?.["messaging.operation.type"], "process");
    assert.equal(messaging.get("judge")?.["messaging.consumer.group.name"], "judge");
    // One is the client's span of a call, the other the server's.
    assert.deepEqual([...(services.found.get("chat") ?? [])].sort(), ["agent-rollout", "inference-gateway"]);
  });

  test("refuses to start a second stack in the same folder", async () => {
    const refused = await stack.hone("run", "examples/01-frozen-lake/run.yaml", "--in-process");
    assert.deepEqual([refused.code, /stop it with hone down/.test(refused.output)], [1, true]);
  });
});
