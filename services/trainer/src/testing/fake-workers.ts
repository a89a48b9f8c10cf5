/**
 * A program in the place of torchrun that speaks the workers' side of proto/hone/training/v1, for tests of what the trainer
 * does when workers answer, refuse, stay silent or die. How it answers a call is in the folder of a load: `answer`,
 * `refuse`, `hang` or `die`.
 */
import { createConnection } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { WorkerAnswerSchema, type WorkerCall, WorkerCallSchema } from "@hone/proto-gen/training";
import { encodeFrame, FrameReader } from "../fsdp/frames.ts";

const socket = createConnection(process.env.HONE_FSDP_SOCKET ?? "");
const reader = new FrameReader();

type Kind = NonNullable<Parameters<typeof create<typeof WorkerAnswerSchema>>[1]>["kind"];

function send(number: number, kind: Kind): void {
  const message = toBinary(WorkerAnswerSchema, create(WorkerAnswerSchema, { number, kind: kind! }));
  // In pieces: a stream keeps no boundaries.
  for (const byte of encodeFrame(message).flatMap((part) => [...part])) socket.write(Uint8Array.of(byte));
}

function answer({ number, kind }: WorkerCall): void {
  const wish = kind.case === "load" ? kind.value.optimizerFolder : "answer";
  console.error(`asked to ${wish}`);
  if (wish === "answer") send(number, { case: "done", value: {} });
  if (wish === "refuse") {
    send(number, { case: "failure", value: { code: "TRAINING_INPUT", message: "Cannot: a rule" } });
  }
  if (wish === "die") process.kill(process.pid, "SIGKILL");
}

socket.on("connect", () => {
  send(0, { case: "hello", value: { worldSize: 1, torchVersion: "none", device: "cpu" } });
});
socket.on("data", (chunk) => {
  for (const message of reader.push(chunk)) answer(fromBinary(WorkerCallSchema, message));
});
socket.on("close", () => process.exit(3));
