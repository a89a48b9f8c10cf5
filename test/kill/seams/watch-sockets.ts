/** Reports every message and every query to the gate before it leaves the process. */

import { Socket } from "node:net";
import type { MomentGate } from "./moment-gate.ts";
import { isNatsHello, natsPublishes } from "./nats-commands.ts";
import { isPostgresHello, PostgresWrites } from "./postgres-queries.ts";

/** An action in a write, such as a message or a query. */
interface Part {
  readonly begin: number;
  readonly end: number;
  readonly what: string;
}

/** Finds the parts of each write on one connection; undefined for connections that are not watched. */
type Reader = ((bytes: Buffer) => Iterable<Part>) | undefined;

type Write = (this: Socket, chunk: unknown, ...rest: unknown[]) => boolean;

/** Watches all sockets that are opened from now on. */
export function watchSockets(gate: MomentGate): void {
  const readers = new WeakMap<Socket, { readonly read: Reader }>();
  const write = Socket.prototype.write as Write;
  const watched: Write = function watchedWrite(chunk, ...rest) {
    if (!(chunk instanceof Uint8Array) || chunk.length === 0) return write.call(this, chunk, ...rest);
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const known = readers.get(this);
    if (known === undefined) readers.set(this, { read: readerOf(bytes, gate) });
    const moment = known?.read === undefined ? undefined : findMoment(known.read(bytes), gate);
    if (moment === undefined) return write.call(this, chunk, ...rest);
    const { at, what } = moment;
    if (at > 0) write.call(this, bytes.subarray(0, at));
    gate.meet(what, this.writableLength === 0);
    return write.call(this, bytes.subarray(at), ...rest);
  };
  Socket.prototype.write = watched as typeof Socket.prototype.write;
}

/** Chooses the reader by the first write of a client. */
function readerOf(hello: Buffer, gate: MomentGate): Reader {
  if (isNatsHello(hello)) return (bytes) => (gate.isArmed() ? messagesIn(bytes) : []);
  if (!isPostgresHello(hello)) return undefined;
  const writes = new PostgresWrites();
  return (bytes) => {
    // Reads the queries even if no moment is armed, to remember prepared ones by name.
    const queries = [...writes.queries(bytes)];
    return gate.isArmed() ? queries.map((query) => ({ ...query, what: `query ${query.text}` })) : [];
  };
}

function* messagesIn(bytes: Buffer): Generator<Part> {
  for (const { begin, end, subject, messageId, payload } of natsPublishes(bytes)) {
    yield { begin, end, what: `publish ${subject} id=${messageId} ${payload}` };
  }
}

/** Position in the write at which to stop. */
function findMoment(parts: Iterable<Part>, gate: MomentGate): { at: number; what: string } | undefined {
  for (const { begin, end, what } of parts) {
    const stop = gate.report(what);
    if (stop !== undefined) return { at: stop === "before" ? begin : end, what };
  }
  return undefined;
}
