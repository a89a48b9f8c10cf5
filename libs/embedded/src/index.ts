/**
 * Finds, starts and ends the servers that Hone needs on one machine.
 *
 *   await using nats = await launchNats({ folder: ".hone/nats" });
 *   await using database = await launchPostgres({ folder: ".hone/postgres" });
 *   nats.url, database.url                        // both ready; both ended when the block ends
 *
 * A watchdog process ends whatever was started, should this process be killed.
 */

export type { Account, Child, ChildExit, ChildOptions, StopOptions } from "./child-process.ts";
export { describeExit, logTail, spawnChild, untilReady } from "./child-process.ts";
export { DownloadError, ProgramMissingError, StartError, StateFolderError } from "./errors.ts";
export { freePort, isPortFree, LOOPBACK } from "./free-port.ts";
export { withLargeArrays } from "./large-arrays.ts";
export type { FetchRoute, FindNatsOptions, NatsBinary } from "./nats-binary.ts";
export { findNatsServer, installLine, NATS_SERVER_VARIABLE } from "./nats-binary.ts";
export type { NatsOptions, RunningNats, RunningServer } from "./nats-server.ts";
export { launchNats } from "./nats-server.ts";
export type { NatsUser } from "./nats-users.ts";
export { postgresAccount, privatePassage } from "./postgres-account.ts";
export { findPostgres } from "./postgres-files.ts";
export type { PostgresOptions } from "./postgres-server.ts";
export { launchPostgres } from "./postgres-server.ts";
export { PRIVATE_FILE, privateFolder } from "./private-files.ts";
export type { ProcessIdentity } from "./process-identity.ts";
export { identifyProcess, isRunning } from "./process-identity.ts";
export type { Supervised, SupervisedEvent, SuperviseOptions } from "./supervise.ts";
export { supervise } from "./supervise.ts";
export { readZipEntry } from "./zip-entry.ts";
