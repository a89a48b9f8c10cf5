/**
 * Reads the stream in which a container runtime sends both outputs of a command, and keeps a bounded part of them.
 *
 * The stream is a sequence of frames: which output (1 standard output, 2 standard error), three zeros, the length (4 bytes, big
 * endian), and the bytes. A command can write anything, but only within frames that the runtime makes.
 */

const HEAD_BYTES = 8;

/** What a command wrote. */
export interface CommandOutput {
  /** Both outputs in the order in which they arrived. */
  readonly bytes: Buffer;
  /** Bytes in the middle that were dropped, as they exceeded the bound. */
  readonly droppedBytes: number;
  /** Where the dropped bytes were. */
  readonly droppedAt: number;
}

export class OutputCollector {
  readonly #maxBytes: number;
  readonly #begin: Buffer[] = [];
  #beginBytes = 0;
  #end: Buffer[] = [];
  #endBytes = 0;
  #droppedBytes = 0;
  #head: Buffer = Buffer.alloc(0);
  /** Bytes of the current frame that are still to come. */
  #remaining = 0;

  /** @param maxBytes the first half and the last half of it are kept. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Takes a part of the stream, which may begin and end within a frame. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#remaining > 0) {
        const part = chunk.subarray(at, at + this.#remaining);
        this.#keep(part);
        this.#remaining -= part.length;
        at += part.length;
        continue;
      }
      const part = chunk.subarray(at, at + HEAD_BYTES - this.#head.length);
      this.#head = Buffer.concat([this.#head, part]);
      at += part.length;
      if (this.#head.length < HEAD_BYTES) continue;
      this.#remaining = this.#head.readUInt32BE(4);
      this.#head = Buffer.alloc(0);
    }
  }

  finish(): CommandOutput {
    const maxEnd = Math.floor(this.#maxBytes / 2);
    if (this.#endBytes > maxEnd) this.#trim(maxEnd);
    const begin = Buffer.concat(this.#begin);
    return {
      bytes: Buffer.concat([begin, ...this.#end]),
      droppedBytes: this.#droppedBytes,
      droppedAt: begin.length,
    };
  }

  #keep(part: Buffer): void {
    const room = Math.ceil(this.#maxBytes / 2) - this.#beginBytes;
    const first = part.subarray(0, Math.max(0, room));
    if (first.length > 0) {
      // A copy, as the chunk is a part of a larger buffer that would stay.
      this.#begin.push(Buffer.from(first));
      this.#beginBytes += first.length;
    }
    const rest = part.subarray(first.length);
    if (rest.length === 0) return;
    this.#end.push(Buffer.from(rest));
    this.#endBytes += rest.length;
    const maxEnd = Math.floor(this.#maxBytes / 2);
    // Trimmed only when it has twice the bound, so that each byte is copied at most twice.
    if (this.#endBytes > 2 * maxEnd) this.#trim(maxEnd);
  }

  #trim(maxEnd: number): void {
    const end = Buffer.concat(this.#end);
    this.#droppedBytes += end.length - maxEnd;
    this.#end = [Buffer.from(end.subarray(end.length - maxEnd))];
    this.#endBytes = maxEnd;
  }
}
