import assert from "node:assert/strict";
import { totalmem } from "node:os";
import { describe, test } from "node:test";
import { EPISODES_MAX_BYTES } from "@hone/messaging";
import { SettingError } from "@hone/service-kit";
import { readTrainerConfig } from "./config.ts";

describe("readTrainerConfig()", () => {
  test("a trainer has one node by default", () => {
    const { torch } = readTrainerConfig({ HONE_TRAINER_PYTHON: "python", HONE_NATS_URL: "x", PATH: "/bin" });
    assert.equal(torch?.nodes, 1);
    assert.deepEqual(torch.environment, { PATH: "/bin" });
    const several = {
      HONE_TRAINER_PYTHON: "python",
      HONE_TRAINER_NODES: "4",
      HONE_TRAINER_NODES_PORT: "1234",
    };
    const { nodes, nodesPort } = readTrainerConfig(several).torch!;
    assert.deepEqual({ nodes, nodesPort }, { nodes: 4, nodesPort: 1_234 });
  });

  test("training may use the memory of the container, or three quarters of the machine's", () => {
    const { engineMemoryBytes } = readTrainerConfig({});
    const container = process.constrainedMemory();
    const isContainer = container > 0 && container < totalmem();
    assert.ok(engineMemoryBytes <= (isContainer ? container : 0.75 * totalmem()));
    assert.equal(readTrainerConfig({ HONE_TRAINER_MEMORY_MIB: "700" }).engineMemoryBytes, 700 * 2 ** 20);
  });

  test("EPISODES gets its default size again when its setting is removed", () => {
    assert.equal(readTrainerConfig({}).episodesMaxBytes, EPISODES_MAX_BYTES);
    assert.equal(readTrainerConfig({ HONE_EPISODES_MAX_BYTES: "5000000" }).episodesMaxBytes, 5_000_000);
  });

  test("refuses several nodes without PyTorch, and values that are not a number of nodes", () => {
    assert.throws(
      () => readTrainerConfig({ HONE_TRAINER_NODES: "2" }),
      (error) => error instanceof SettingError && /HONE_TRAINER_NODES must be 1 without/.test(error.message),
    );
    // LeaderWorkerSet would have replaced this text by a number.
    assert.throws(() => readTrainerConfig({ HONE_TRAINER_NODES: "$(LWS_GROUP_SIZE)" }), /HONE_TRAINER_NODES/);
  });
});
