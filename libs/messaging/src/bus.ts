/** The connection to NATS that everything else in this package uses. */

import { deadline, describeError } from "@hone/core";
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { Objm } from "@nats-io/obj";
import { BusUnavailableError } from "./errors.ts";
import { ReplyInbox } from "./exchange/reply-inbox.ts";
import { connectGathering } from "./gathering-transport.ts";
import { type PayloadWriter, payloadStoreOf } from "./payloads/payload-stores.ts";
import { splitCredentials } from "./rights/server-address.ts";
import { StreamsRole } from "./rights/streams-role.ts";

/** Options of {@link connectBus}. */
export interface BusOptions {
  /** An address such as `nats://user:password@127.0.0.1:4222`, or several, separated by commas. */
  readonly url: string;
  /** Shown in the server's list of connections. */
  readonly name: string;
  /** Time limit of the first connection. @default 20_000 */
  readonly connectTimeoutMs?: number;
  /**
   * First token of every subject on which this connection receives answers, so that a server can keep others from
   * receiving them. @default _INBOX
   */
  readonly inboxPrefix?: string;
  /** The user of this connection in the table of rights (bus-rights.ts), also on a bus without users. @default client */
  readonly user?: PayloadWriter;
  /** Whether this connection creates streams and consumers, or waits for them. @default make */
  readonly streams?: StreamsRole;
  readonly signal?: AbortSignal;
}

/** A connection with its JetStream, key-value and object-store clients. */
export interface Bus {
  readonly connection: NatsConnection;
  readonly stream: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly keyValue: Kvm;
  readonly objects: Objm;
  readonly streamsRole: StreamsRole;
  /** The bucket for this connection's large payloads (payload-stores.ts). */
  readonly payloadStore: string;
  /** Receives the replies to this connection's requests. */
  readonly replies: ReplyInbox;
  /** Largest message that the server accepts, including headers. */
  maxPayloadBytes(): number;
  /** Sends what is buffered and closes the connection; a second call does nothing. */
  close(): Promise<void>;
}

/** Pause between two attempts to reconnect; their number is not limited. */
const RECONNECT_WAIT_MS = 250;
/** A broken network is noticed after two to three of these intervals; a busy process answers much sooner. */
const PING_INTERVAL_MS = 5_000;
/** Time limit of one attempt to connect, after which a network that drops packets is noticed. */
const CONNECT_TRY_MS = 5_000;
const CLOSE_DEADLINE_MS = 3_000;

/**
 * Connects, and reconnects for ever when the connection is lost. What is published meanwhile is refused or buffered by the
 * client.
 * @throws {BusUnavailableError} when no server answers in time; the signal's reason when it aborts first.
 * @throws {InvalidInputError} for a malformed address.
 */
export async function connectBus(options: BusOptions): Promise<Bus> {
  const { name, connectTimeoutMs = 20_000, inboxPrefix, signal } = options;
  const { servers: url, user, password } = splitCredentials(options.url);
  let connection: NatsConnection;
  let connecting: Promise<NatsConnection> | undefined;
  try {
    connection = await deadline(
      `a NATS server at ${url}`,
      connectTimeoutMs,
      () => {
        connecting = connectGathering({
          servers: url.split(","),
          name,
          maxReconnectAttempts: -1,
          pingInterval: PING_INTERVAL_MS,
          timeout: CONNECT_TRY_MS,
          reconnectDelayHandler: reconnectDelay(),
          waitOnFirstConnect: true,
          // Capturing a stack trace for every call costs more than the call itself.
          noAsyncTraces: true,
          ...(user === undefined ? {} : { user }),
          ...(password === undefined ? {} : { pass: password }),
          ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
        });
        return connecting;
      },
      { signal },
    );
  } catch (error) {
    // A connection that still opens later must be closed, as nobody uses it.
    connecting?.then((late) => late.close()).catch(() => undefined);
    signal?.throwIfAborted(); // an abort is not a failure to connect
    throw new BusUnavailableError(`connect to NATS (${describeError(error)})`, url, { cause: error });
  }
  const replies = new ReplyInbox(connection, inboxPrefix);
  let closing: Promise<void> | undefined;
  return {
    connection,
    stream: jetstream(connection),
    manager: await jetstreamManager(connection, { checkAPI: false }),
    keyValue: new Kvm(connection),
    objects: new Objm(connection),
    replies,
    payloadStore: payloadStoreOf(options.user ?? "client"),
    streamsRole: options.streams ?? StreamsRole.make,
    maxPayloadBytes: () => connection.info?.max_payload ?? 1_048_576,
    close() {
      closing ??= closeConnection(connection);
      return closing;
    },
  };
}

/**
 * @returns the pause before the next attempt to reconnect. The client adds it to the wall-clock time of its last attempt. If
 * the clock was set back since then it would wait that much longer, so the pause is shortened by it.
 */
function reconnectDelay(): () => number {
  const offset = () => Date.now() - performance.now();
  let last = offset();
  return () => {
    const now = offset();
    const wentBackMs = Math.max(0, last - now);
    last = now;
    return RECONNECT_WAIT_MS - Math.round(wentBackMs);
  };
}

async function closeConnection(connection: NatsConnection): Promise<void> {
  if (connection.isClosed()) return;
  try {
    // Draining waits for the server, which may be gone. After a time limit the socket is closed instead.
    await deadline("the bus to drain", CLOSE_DEADLINE_MS, () => connection.drain());
  } catch {
    await connection.close();
  }
}
