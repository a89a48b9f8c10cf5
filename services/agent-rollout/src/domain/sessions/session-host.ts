/**
 * The sessions that are open in this process, by id.
 *
 * The credential gives access to this session and no other. It is random, as is the end of the id (session-id.ts), so a process
 * that restarts after a crash knows no earlier session, and answers clients of one that it is over.
 */

import { randomBytes } from "node:crypto";
import { SessionOverError } from "./errors.ts";
import { OpenSession, type OpenSessionParts } from "./open-session.ts";
import { newSessionId } from "./session-id.ts";

const KEY_BYTES = 32;

/** An open session, with the address and the credential for its agent. */
export interface HostedSession {
  readonly session: OpenSession;
  /** Without a slash at its end. */
  readonly url: string;
  readonly key: string;
  /** Ends the session: no further calls are accepted, and calls under way end. */
  close(): void;
}

export class SessionHost {
  readonly #open = new Map<string, OpenSession>();
  readonly #baseUrl: string;

  /** @param baseUrl address at which agents reach this process, without a slash at its end. */
  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  get numOpen(): number {
    return this.#open.size;
  }

  /** @param rolloutId the rollout that the session belongs to. */
  open(rolloutId: string, parts: Omit<OpenSessionParts, "id" | "key">): HostedSession {
    const id = newSessionId(rolloutId);
    const key = `hone-${randomBytes(KEY_BYTES).toString("base64url")}`;
    const session = new OpenSession({ ...parts, id, key });
    this.#open.set(id, session);
    return {
      session,
      key,
      url: `${this.#baseUrl}/sessions/${id}`,
      close: () => {
        this.#open.delete(id);
        session.close();
      },
    };
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** @throws {SessionOverError} when no session with this id is open. */
  find(id: string): OpenSession {
    const session = this.#open.get(id);
    if (session === undefined) throw new SessionOverError(id);
    return session;
  }
}
