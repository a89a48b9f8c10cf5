/** The connection to NATS that everything else in this package takes. */

import { deadline, describeError } from "@hone/core";
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { Objm } from "@nats-io/obj";
import { connect } from "@nats-io/transport-node";
import { BusUnavailableError } from "./errors.ts";
import { ReplyInbox } from "./exchange/reply-inbox.ts";
import { type PayloadWriter, payloadStoreOf } from "./payloads/payload-stores.ts";
import { splitCredentials } from "./rights/server-address.ts";
import { StreamsRole } from "./rights/streams-role.ts";

/** Options of {@link connectBus}. */
export interface BusOptions {
  /** Such as `nats://user:password@127.0.0.1:4222`; several, separated by commas. */
  readonly url: string;
  /** Shown in the server's list of connections. */
  readonly name: string;
  /** How long the first connection may take. @default 20_000 */
  readonly connectTimeoutMs?: number;
  /**
   * First token of every subject on which this connection hears answers, so that a server can keep others from
   * listening to them. @default _INBOX
   */
  readonly inboxPrefix?: string;
  /** The user of the table of rights (bus-rights.ts) that this connection is, or would be on a bus with users. @default client */
  readonly user?: PayloadWriter;
  /** Whether this connection may make streams and consumers. @default make */
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
  /** The bucket that this connection's large payloads go to (payload-stores.ts). */
  readonly payloadStore: string;
  /** Replies to this connection's streamed requests. */
  readonly replies: ReplyInbox;
  /** Largest message that the server takes, headers included. */
  maxPayloadBytes(): number;
  /** Sends what is buffered and closes; a second call does nothing. */
  close(): Promise<void>;
}

/** Pause between two tries to reconnect; there is no last try. */
const RECONNECT_WAIT_MS = 250;
/** A server that a broken network hides is noticed after two to three of these; a busy process answers much sooner. */
const PING_INTERVAL_MS = 5_000;
/** One try to connect; a network that swallows packets is noticed in this time. */
const CONNECT_TRY_MS = 5_000;
const CLOSE_DEADLINE_MS = 3_000;

/**
 * Connects, and stays connected: a lost server is tried again for ever, and what is published meanwhile is refused or
 * buffered by the client as its deadline allows.
 * @throws {BusUnavailableError} when there is no server within the time allowed; the signal's reason when it aborts first.
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
        connecting = connect({
          servers: url.split(","),
          name,
          maxReconnectAttempts: -1,
          pingInterval: PING_INTERVAL_MS,
          timeout: CONNECT_TRY_MS,
          reconnectDelayHandler: reconnectDelay(),
          waitOnFirstConnect: true,
          // A stack kept for every call that might fail costs more than the call itself.
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
    // What opens after all has nobody who would close it.
    connecting?.then((late) => late.close()).catch(() => undefined);
    signal?.throwIfAborted(); // who was told to stop did not fail to connect
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
 * Pauses between two tries to reconnect. The client adds them to the time of its last try on the clock of the wall, and
 * would wait for as long as that clock went back: the pause is shorter by just that.
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
    // A drain waits for the server, which may be gone: it gets a bounded time, then the socket is closed.
    await deadline("the bus to drain", CLOSE_DEADLINE_MS, () => connection.drain());
  } catch {
    await connection.close();
  }
}
