import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { RunnableLambda } from "@langchain/core/runnables";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { installLeanRunContext } from "./lean-run-context.ts";

const State = Annotation.Root({
  seen: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

describe("installLeanRunContext()", () => {
  test("does not change a process that traces with LangSmith", () => {
    const original = AsyncLocalStorageProviderSingleton.runWithConfig;
    assert.equal(installLeanRunContext({ LANGSMITH_TRACING: "true" }), false);
    assert.equal(AsyncLocalStorageProviderSingleton.runWithConfig, original);
  });

  describe("once installed", () => {
    before(() => {
      assert.equal(installLeanRunContext({}), true);
    });

    test("nested calls inherit the config of their own run", async () => {
      const whoAmI = RunnableLambda.from((_: unknown, config) => String(config.configurable?.who));
      const graph = new StateGraph(State)
        .addNode("one", async () => ({ seen: [await whoAmI.invoke({})] }))
        .addNode("two", async () => ({ seen: [await whoAmI.invoke({})] }))
        .addEdge(START, "one")
        .addEdge("one", "two")
        .addEdge("two", END)
        .compile();
      const runs = await Promise.all(
        ["a", "b", "c"].map((who) => graph.invoke({}, { configurable: { who } })),
      );
      assert.deepEqual(
        runs.map(({ seen }) => seen),
        [
          ["a", "a"],
          ["b", "b"],
          ["c", "c"],
        ],
      );
    });

    test("the callbacks of a run are still called for every node", async () => {
      const graph = new StateGraph(State)
        .addNode("one", () => ({ seen: ["one"] }))
        .addEdge(START, "one")
        .addEdge("one", END)
        .compile();
      const started: string[] = [];
      await graph.invoke(
        {},
        {
          callbacks: [
            {
              handleChainStart: (_chain, _input, _id, _parent, _tags, _metadata, _type, name) =>
                void started.push(String(name)),
            },
          ],
        },
      );
      assert.ok(started.includes("one"), started.join(", "));
    });
  });
});
