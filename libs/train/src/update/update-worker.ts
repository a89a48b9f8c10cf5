/** A thread that runs tasks on its parameters, one after the other. */
import { parentPort } from "node:worker_threads";
import { describeError } from "@hone/core";
import { runUpdateTask } from "./update-task.ts";
import { transferables, type UpdateAnswer, type UpdateCall } from "./update-threads.ts";

parentPort?.on("message", (task: UpdateCall) => {
  if (task.kind === "end") {
    parentPort?.close();
    return;
  }
  try {
    const answer: UpdateAnswer = { kind: "done", squares: runUpdateTask(task), task };
    parentPort?.postMessage(answer, transferables(task));
  } catch (error) {
    const answer: UpdateAnswer = { kind: "error", message: describeError(error) };
    parentPort?.postMessage(answer);
  }
});
