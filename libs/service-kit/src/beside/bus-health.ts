/** Whether the bus is connected at this moment, as its client reports it. */

import type { Bus } from "@hone/messaging";
import { notReady, READY, type Readiness, type ReadinessCheck } from "../lifecycle/readiness.ts";

export interface BusHealth extends ReadinessCheck {
  /** Resolves with the reason when the client gave up for good; never while this process closes it itself. */
  readonly lost: Promise<Error>;
}

export function watchBus(bus: Bus): BusHealth {
  let state: Readiness = READY;
  const lost = Promise.withResolvers<Error>();
  void follow();
  void bus.connection.closed().then((error) => {
    if (error instanceof Error) lost.resolve(error);
  });

  // It ends with the connection, as the iterator of its status does.
  async function follow(): Promise<void> {
    for await (const status of bus.connection.status()) {
      if (status.type === "disconnect" || status.type === "reconnecting") state = notReady("disconnected");
      else if (status.type === "reconnect") state = READY;
      else if (status.type === "close") state = notReady("closed");
    }
  }
  return { name: "bus", check: () => state, lost: lost.promise };
}
