/**
 * A program in the place of torchrun that speaks the workers' side of proto/hone/training/v1, for tests of what the trainer
 * does when workers answer, refuse, stay silent or die. The folder of a load says how it answers: `answer`, `refuse`,
 * `hang` or `die`.
 */
import { createConnection } from "node:net";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  WorkerAnswerSchema,
  type WorkerCall,
  WorkerCallSchema,
  type WorkerSpanSchema,
} from "@hone/proto-gen/training";
import { encodeFrame, FrameReader } from "../fsdp/frames.ts";

type Span = MessageInitShape<typeof WorkerSpanSchema>;
type Kind = NonNullable<MessageInitShape<typeof WorkerAnswerSchema>["kind"]>;

/** The spans of two ranks for any recorded call: a millisecond each, at whole seconds that a test recognises. */
const SPANS: readonly Span[] = [0, 1].flatMap((rank) => [
  { name: "read", rank, beginUnixNs: 1_700_000_001_000_000_000n, endUnixNs: 1_700_000_001_001_000_000n },
  { name: "load", rank, beginUnixNs: 1_700_000_000_000_000_000n, endUnixNs: 1_700_000_002_000_000_000n },
]);

/** Answers calls until the connection ends. @param host the program's own process. */
export function speakAsWorkers(host: NodeJS.Process): void {
  const socket = createConnection(host.env.HONE_FSDP_SOCKET ?? "");
  const reader = new FrameReader();

  const send = (number: number, kind: Kind, spans: readonly Span[] = []) => {
    const answer = create(WorkerAnswerSchema, { number, kind, spans: [...spans] });
    const message = toBinary(WorkerAnswerSchema, answer);
    // Sent in pieces, since a stream does not keep the boundaries of messages.
    for (const byte of encodeFrame(message).flatMap((part) => [...part])) socket.write(Uint8Array.of(byte));
  };
  const answer = ({ number, kind, traceparent }: WorkerCall) => {
    const wish = kind.case === "load" ? kind.value.optimizerFolder : "answer";
    host.stderr.write(`asked to ${wish}\n`);
    if (wish === "answer") send(number, { case: "done", value: {} }, traceparent === "" ? [] : SPANS);
    if (wish === "refuse") {
      send(number, { case: "failure", value: { code: "TRAINING_INPUT", message: "Cannot: a rule" } });
    }
    if (wish === "die") host.kill(host.pid, "SIGKILL");
  };

  socket.on("connect", () => {
    const worldSize = Number(host.env.FAKE_WORLD_SIZE ?? 1);
    send(0, { case: "hello", value: { worldSize, torchVersion: "none", device: "cpu" } });
  });
  socket.on("data", (chunk) => {
    for (const message of reader.push(chunk)) answer(fromBinary(WorkerCallSchema, message));
  });
  socket.on("close", () => host.exit(3));
}
