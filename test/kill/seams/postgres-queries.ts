/**
 * Finds the queries in the output of a PostgreSQL client.
 *
 *   start    <length> 00 03 00 00 …             once, without a type
 *   message  <type> <length, itself included> …
 *   Q  query            P  parse: name, query     B  bind: portal, name (what runs a prepared query)
 *   S  sync: the end of what belongs to a bind
 */

/** One query, and the position of its messages in the output. */
export interface PostgresQuery {
  readonly begin: number;
  readonly end: number;
  readonly text: string;
}

const PROTOCOL_3 = 0x0003_0000;
const HEADER_BYTES = 5;

/** Whether the first write on a socket is that of a PostgreSQL client. */
export function isPostgresHello(bytes: Buffer): boolean {
  return bytes.length >= 8 && bytes.readUInt32BE(0) === bytes.length && bytes.readUInt32BE(4) === PROTOCOL_3;
}

/** Reads the writes of one connection, which prepares a query once and then calls it by name. */
export class PostgresWrites {
  readonly #queries = new Map<string, string>();

  /** The queries in one write, in order. @throws when the write ends within a message. */
  *queries(bytes: Buffer): Generator<PostgresQuery> {
    let begin = 0;
    let bound: Omit<PostgresQuery, "end"> | undefined;
    while (begin < bytes.length) {
      const end =
        begin + 1 + (begin + HEADER_BYTES <= bytes.length ? bytes.readUInt32BE(begin + 1) : Number.NaN);
      if (!(end <= bytes.length)) {
        throw new Error(
          `a write to PostgreSQL is incomplete at byte ${bytes.length}; it must hold whole messages`,
        );
      }
      const [first = "", second = ""] = bytes.toString("latin1", begin + HEADER_BYTES, end).split("\0", 2);
      const type = String.fromCharCode(bytes[begin] ?? 0);
      if (type === "P") this.#queries.set(first, second);
      if (type === "Q") yield { begin, end, text: first };
      if (type === "B") bound = { begin, text: this.#queries.get(second) ?? "" };
      if (type === "S" && bound !== undefined) {
        yield { ...bound, end };
        bound = undefined;
      }
      begin = end;
    }
  }
}
