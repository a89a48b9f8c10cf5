/**
 * Finds, starts and ends the servers that Hone needs on one machine.
 *
 *   await using nats = await launchNats({ folder: ".hone/nats" });
 *   await using database = await launchPostgres({ folder: ".hone/postgres" });
 *   nats.url, database.url                        // both ready; both ended when the block ends
 *
 * If this process is killed, a watchdog process ends everything that it started.
 */

export { DownloadError, ProgramMissingError, StartError, StateFolderError } from "./errors.ts";
export { type EngineWork, withLargeArrays } from "./large-arrays.ts";
export type { FetchRoute, FindNatsOptions, NatsBinary } from "./nats/nats-binary.ts";
export { findNatsServer, installLine, NATS_SERVER_VARIABLE } from "./nats/nats-binary.ts";
export type { NatsOptions, RunningNats, RunningServer } from "./nats/nats-server.ts";
export { launchNats } from "./nats/nats-server.ts";
export type { NatsUser } from "./nats/nats-users.ts";
export { postgresAccount, privatePassage } from "./postgres/postgres-account.ts";
export { findPostgres } from "./postgres/postgres-files.ts";
export type { PostgresOptions } from "./postgres/postgres-server.ts";
export { launchPostgres } from "./postgres/postgres-server.ts";
export { PRIVATE_FILE, privateFolder } from "./private-files.ts";
export type { Account, Child, ChildExit, ChildOptions, StopOptions } from "./processes/child-process.ts";
export { describeExit, logTail, spawnChild, untilReady } from "./processes/child-process.ts";
export { freePort, isPortFree, LOOPBACK } from "./processes/free-port.ts";
export type { ProcessIdentity } from "./processes/process-identity.ts";
export { identifyProcess, isRunning } from "./processes/process-identity.ts";
export type { Supervised, SupervisedEvent, SuperviseOptions } from "./processes/supervise.ts";
export { supervise } from "./processes/supervise.ts";
export { readZipEntry } from "./zip-entry.ts";
