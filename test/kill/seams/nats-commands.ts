/**
 * Splits the output of a NATS client into its commands.
 *
 *   CONNECT {…}␍␊   PING␍␊   PONG␍␊   SUB …␍␊   UNSUB …␍␊
 *   PUB <subject> [reply-to] <bytes>␍␊<payload>␍␊
 *   HPUB <subject> [reply-to] <header bytes> <all bytes>␍␊<headers><payload>␍␊
 */

/** One published message, and the position of its command in the output. */
export interface NatsPublish {
  readonly begin: number;
  readonly end: number;
  readonly subject: string;
  /** Nats-Msg-Id; empty if there is none. */
  readonly messageId: string;
  /** The payload, with one character per byte. */
  readonly payload: string;
}

const LINE_END = "\r\n";
const FIRST_COMMAND = "CONNECT ";
const MESSAGE_ID = /^Nats-Msg-Id: *(.*?)\r?$/im;

/** Whether the first write on a socket is that of a NATS client. */
export function isNatsHello(bytes: Buffer): boolean {
  return bytes.subarray(0, FIRST_COMMAND.length).toString("latin1") === FIRST_COMMAND;
}

/** The messages in one write, in order. @throws when the write ends within a command. */
export function* natsPublishes(bytes: Buffer): Generator<NatsPublish> {
  let begin = 0;
  while (begin < bytes.length) {
    const lineEnd = bytes.indexOf(LINE_END, begin);
    if (lineEnd < 0) throw cut(bytes.length);
    const words = bytes.toString("latin1", begin, lineEnd).split(" ");
    const body = lineEnd + LINE_END.length;
    const hasHeaders = words[0] === "HPUB";
    if (!hasHeaders && words[0] !== "PUB") {
      begin = body;
      continue;
    }
    const payloadEnd = body + Number(words.at(-1));
    const payloadBegin = hasHeaders ? body + Number(words.at(-2)) : body;
    const end = payloadEnd + LINE_END.length;
    if (!(end <= bytes.length)) throw cut(bytes.length);
    yield {
      begin,
      end,
      subject: words[1] ?? "",
      messageId: MESSAGE_ID.exec(bytes.toString("latin1", body, payloadBegin))?.[1] ?? "",
      payload: bytes.toString("latin1", payloadBegin, payloadEnd),
    };
    begin = end;
  }
}

function cut(length: number): Error {
  return new Error(`a write to NATS is incomplete at byte ${length}; it must hold whole commands`);
}
