/**
 * The client's transport with fewer, larger writes: of what one turn of the event loop sends, the first goes out at once and
 * the rest together at its end.
 *
 * The client itself writes once per callback, and a busy service handles many callbacks in a turn. Each write costs a system
 * call here and wakes the server, which is most of what small messages cost.
 *
 * G1: frames leave in the order in which they were given.
 * G2: nothing is kept back when the connection is closed in an orderly way.
 */

import type { ConnectionOptions, NatsConnection } from "@nats-io/nats-core";
import { NatsConnectionImpl, setTransportFactory } from "@nats-io/nats-core/internal";
import { NodeTransport, nodeResolveHost } from "@nats-io/transport-node/lib/node_transport.js";

/** As `connect` of the client, with this transport. */
export function connectGathering(options: ConnectionOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new GatheringTransport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}

class GatheringTransport extends NodeTransport {
  /** What waits for the end of this turn; undefined = nothing was sent in it. */
  #waiting: Uint8Array[] | undefined;

  override send(frame: Uint8Array): void {
    if (this.#waiting !== undefined) {
      this.#waiting.push(frame); // G1
      return;
    }
    this.#waiting = [];
    setImmediate(() => this.#flush());
    super.send(frame);
  }

  override close(error?: Error): Promise<void> {
    this.#flush(); // G2
    return super.close(error);
  }

  override disconnect(): void {
    this.#flush();
    super.disconnect();
  }

  #flush(): void {
    const frames = this.#waiting ?? [];
    this.#waiting = undefined;
    if (frames.length > 0) super.send(frames.length === 1 ? frames[0]! : Buffer.concat(frames));
  }
}
