/**
 * Real servers for tests, each in its own temporary folder, which is removed when the test ends.
 *
 *   await using nats = await startNats();
 *   const connection = await connect(nats.login);
 */

import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  launchNats,
  launchPostgres,
  type NatsOptions,
  type RunningNats,
  type RunningServer,
} from "@hone/embedded";

export interface TestServerOptions {
  /** Keeps the state here instead of in a temporary folder, so that a test can start on it again. */
  readonly folder?: string;
  readonly port?: number;
  readonly signal?: AbortSignal;
}

/** A `nats-server` with JetStream; `url` holds the password of a user that may do everything, unless others are given. */
export function startNats(
  options: TestServerOptions &
    Pick<NatsOptions, "accounts" | "maxPayloadBytes" | "monitorPort" | "users"> = {},
): Promise<RunningNats> {
  return inFolder("nats", options.folder, (folder) => launchNats({ ...options, folder }));
}

/** PostgreSQL with an empty database, set up for speed instead of for power failures. */
export function startPostgres(options: TestServerOptions = {}): Promise<RunningServer> {
  return inFolder("postgres", options.folder, (folder) =>
    launchPostgres({ ...options, folder, isThrowAway: true }),
  );
}

/** A folder that is removed at the end of the scope. */
export interface TemporaryFolder extends AsyncDisposable {
  readonly path: string;
}

/** Makes an empty folder. Entering it is open to all, as PostgreSQL runs as another account under root. */
export async function temporaryFolder(name = "test"): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(tmpdir(), `hone-${name}-`));
  await chmod(path, 0o755); // mkdtemp leaves it to its owner alone
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true, maxRetries: 5 }) };
}

async function inFolder<Server extends RunningServer>(
  name: string,
  given: string | undefined,
  launch: (folder: string) => Promise<Server>,
): Promise<Server> {
  if (given !== undefined) return launch(given);
  const folder = await temporaryFolder(name);
  try {
    const server = await launch(folder.path);
    const stop: RunningServer["stop"] = async (options) => {
      const exit = await server.stop(options);
      await folder[Symbol.asyncDispose]();
      return exit;
    };
    return Object.assign(
      { ...server },
      {
        stop,
        [Symbol.asyncDispose]: async () => {
          await stop();
        },
      },
    );
  } catch (error) {
    await folder[Symbol.asyncDispose]();
    throw error;
  }
}
