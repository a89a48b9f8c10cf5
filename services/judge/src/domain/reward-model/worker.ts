/** The thread of one reward model. onnxruntime blocks the thread it runs on, which must not be the judge's. */

import { parentPort, workerData } from "node:worker_threads";
import { describeError } from "@hone/core";
import { InferenceSession, Tensor } from "onnxruntime-node";
import type { FromRewardWorker, ToRewardWorker } from "./messages.ts";

const port = parentPort!;
const post = (message: FromRewardWorker) => port.postMessage(message);
/** The inputs of classifiers on the Hugging Face hub, with the value of each at a position. */
const INPUTS: Readonly<Record<string, (id: number, position: number) => number>> = {
  input_ids: (id) => id,
  attention_mask: () => 1,
  token_type_ids: () => 0,
  position_ids: (_, position) => position,
};
const IDS = "input_ids";

try {
  const session = await InferenceSession.create(workerData as string, {
    executionProviders: ["cpu"],
    // Threads must not spin between two judgements, as other services need the cores.
    extra: { session: { intra_op: { allow_spinning: "0" } } },
  });
  const unknown = session.inputNames.filter((name) => !Object.hasOwn(INPUTS, name));
  if (unknown.length > 0 || !session.inputNames.includes(IDS)) {
    throw new Error(
      `its inputs are ${session.inputNames.join(", ")}; it must have ${IDS}, and may have only ${Object.keys(INPUTS).join(", ")}`,
    );
  }
  port.on("message", async ({ id, tokenIds }: ToRewardWorker) => {
    try {
      const shape = [1, tokenIds.length];
      const feeds = Object.fromEntries(
        session.inputNames.map((name) => {
          const data = Array.from(tokenIds, (id, position) => BigInt(INPUTS[name]!(id, position)));
          return [name, new Tensor("int64", BigInt64Array.from(data), shape)];
        }),
      );
      const fetched = await session.run(feeds);
      const logits = fetched.logits ?? fetched[session.outputNames[0] ?? ""];
      post({ kind: "outputs", id, outputs: Array.from(logits?.data as ArrayLike<number>, Number) });
    } catch (error) {
      post({ kind: "failed", id, reason: describeError(error) });
    }
  });
  post({ kind: "ready" });
} catch (error) {
  post({ kind: "unusable", reason: describeError(error) });
}
