/** Messages on a stream, each preceded by its length in bytes (uint32, little-endian), as proto/hone/training/v1 says. */

const LENGTH_BYTES = 4;
/** More than any answer has; a larger length was not written by a worker. */
const MAX_FRAME_BYTES = 2 ** 31 - 1;

/** A message with its length before it. @throws {RangeError} where it is too long. */
export function encodeFrame(message: Uint8Array): [length: Uint8Array, message: Uint8Array] {
  if (message.length > MAX_FRAME_BYTES) {
    throw new RangeError(
      `a message of ${message.length} bytes is too large for the training workers; ${MAX_FRAME_BYTES} are allowed`,
    );
  }
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32LE(message.length);
  return [length, message];
}

/** Cuts what arrives into messages. */
export class FrameReader {
  #parts: Buffer[] = [];
  #bytes = 0;
  #wanted: number | undefined;

  /** @returns the messages that are whole now. @throws {RangeError} where the stream does not hold messages. */
  push(chunk: Buffer): Buffer[] {
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    const messages: Buffer[] = [];
    for (;;) {
      if (this.#wanted === undefined) {
        if (this.#bytes < LENGTH_BYTES) return messages;
        this.#wanted = this.#take(LENGTH_BYTES).readUInt32LE();
        if (this.#wanted > MAX_FRAME_BYTES) {
          throw new RangeError(
            `the training workers announce a message of ${this.#wanted} bytes; ${MAX_FRAME_BYTES} are allowed`,
          );
        }
      }
      if (this.#bytes < this.#wanted) return messages;
      messages.push(this.#take(this.#wanted));
      this.#wanted = undefined;
    }
  }

  #take(count: number): Buffer {
    const all = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts);
    this.#parts = [all.subarray(count)];
    this.#bytes -= count;
    return all.subarray(0, count);
  }
}
