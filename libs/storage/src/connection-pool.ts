/**
 * The driver's connections, replaced as a whole when one of them breaks.
 *
 * postgres.js 3.4.9 keeps state of a broken connection: the next query on it may get the old connection's error, never
 * be sent, or never be answered. So:
 * P1: after an error of the connection, new queries go to a new generation of connections.
 * P2: queries on the old generation have two seconds to finish and are then ended, so that none waits for ever.
 * P3: after `close` there is no new generation.
 */

import type postgres from "postgres";
import { drizzle } from "./drizzle.ts";
import type { Queryable } from "./queryable.ts";

/** How long queries on an old generation may take to finish. */
const RETIRE_GRACE_SECONDS = 2;
/** The same when the pool closes, as part of a service's grace time. */
const CLOSE_GRACE_SECONDS = 2;

export class ConnectionPool {
  readonly #connect: () => postgres.Sql;
  #driver: postgres.Sql;
  #queries: Queryable;
  #retiring = new Set<Promise<void>>();
  #closing: Promise<void> | undefined;

  /** @param connect creates a generation, which connects with its first query. */
  constructor(connect: () => postgres.Sql) {
    this.#connect = connect;
    this.#driver = connect();
    this.#queries = drizzle(this.#driver);
  }

  /** The current generation; get it again for each use. */
  get driver(): postgres.Sql {
    return this.#driver;
  }

  get queries(): Queryable {
    return this.#queries;
  }

  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** Starts a new generation if `broken` is still the current one (P1). */
  renew(broken: postgres.Sql): void {
    if (this.isClosed || broken !== this.#driver) return; // P3
    this.#driver = this.#connect();
    this.#queries = drizzle(this.#driver);
    const retired = broken
      .end({ timeout: RETIRE_GRACE_SECONDS })
      .finally(() => this.#retiring.delete(retired)); // P2
    this.#retiring.add(retired);
  }

  /** Lets running queries end for two seconds, then closes. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= Promise.all([
      this.#driver.end({ timeout: CLOSE_GRACE_SECONDS }),
      ...this.#retiring,
    ]).then(() => undefined);
    return this.#closing;
  }
}
