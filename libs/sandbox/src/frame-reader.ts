/**
 * Reads the frames of a child process that may be hostile.
 *
 * F1: never more than the current limit is held in memory; a frame that announces more is refused after its first bytes.
 * F2: a frame is valid only with the current nonce, which code in the child cannot know (child.ts, H3).
 */

import { timingSafeEqual } from "node:crypto";
import { FrameKind, NONCE_BYTES } from "./protocol.ts";

export type Frame = { readonly kind: keyof typeof FrameKind; readonly payload: Buffer };

/** The child broke the protocol. */
export class ProtocolError extends Error {}

const LENGTH_BYTES = 4;
const HEAD_BYTES = NONCE_BYTES + 1;
const KINDS: ReadonlyMap<number, Frame["kind"]> = new Map(
  Object.entries(FrameKind).map(([name, kind]) => [kind, name as Frame["kind"]]),
);

export class FrameReader {
  #chunks: Buffer[] = [];
  #numBytes = 0;
  #nonce: Buffer = Buffer.alloc(0);
  #maxPayloadBytes = 0;

  /** Sets the nonce and the longest payload of the following frames. */
  expect(nonce: Buffer, maxPayloadBytes: number): void {
    this.#nonce = nonce;
    this.#maxPayloadBytes = maxPayloadBytes;
  }

  /**
   * Yields the frames that this chunk completes. Each is checked when the caller asks for it, against what is expected after
   * the frame before it was handled.
   * @throws {ProtocolError}
   */
  *read(chunk: Buffer): Generator<Frame> {
    this.#chunks.push(chunk);
    this.#numBytes += chunk.length;
    while (this.#numBytes >= LENGTH_BYTES) {
      const length = this.#peek(LENGTH_BYTES).readUInt32LE();
      if (length < HEAD_BYTES || length - HEAD_BYTES > this.#maxPayloadBytes) {
        throw new ProtocolError(`a frame of ${length} bytes`); // F1
      }
      if (this.#numBytes < LENGTH_BYTES + length) break;
      const frame = this.#peek(LENGTH_BYTES + length).subarray(LENGTH_BYTES, LENGTH_BYTES + length);
      this.#drop(LENGTH_BYTES + length);
      yield this.#parse(frame);
    }
  }

  #parse(frame: Buffer): Frame {
    const nonce = frame.subarray(0, NONCE_BYTES);
    if (nonce.length !== this.#nonce.length || !timingSafeEqual(nonce, this.#nonce)) {
      throw new ProtocolError("a frame that is not of this run"); // F2
    }
    const kind = KINDS.get(frame[NONCE_BYTES] ?? 0);
    if (kind === undefined) throw new ProtocolError(`a frame of kind ${frame[NONCE_BYTES]}`);
    return { kind, payload: frame.subarray(HEAD_BYTES) };
  }

  /** The first chunk, after joining chunks until it is at least this long. */
  #peek(numBytes: number): Buffer {
    const [first] = this.#chunks;
    if (first !== undefined && first.length >= numBytes) return first;
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }

  #drop(numBytes: number): void {
    const rest = (this.#chunks[0] ?? Buffer.alloc(0)).subarray(numBytes);
    this.#chunks = [...(rest.length > 0 ? [rest] : []), ...this.#chunks.slice(1)];
    this.#numBytes -= numBytes;
  }
}
