/**
 * The id of a session, which is in its URL:
 *
 *   id = run "." slot "." 32 random hexadecimal digits      frozen-lake-12.train.3.17.5.9f86d081884c7d659a2feaa0c55ad015
 *
 * It names its rollout, so that any process can tell to which rollout a reward belongs that comes after the session has ended. It is
 * not secret; what opens a session, or gives such a reward, is its key, of which the judge has the digest.
 */

import { createHash, randomBytes } from "node:crypto";
import { parseSlotKey, type Slot } from "@hone/core";

const ID_BYTES = 16;
const FORM = /^([a-z0-9-]{1,64})\.((?:train|eval|warm)(?:\.\d{1,9}){3})\.[0-9a-f]{32}$/;

/** A rollout as a session's id names it. */
export interface SessionRollout {
  readonly runId: string;
  readonly slot: Slot;
}

/** @param rolloutId `<run>/<slot>`. */
export function newSessionId(rolloutId: string): string {
  return `${rolloutId.replace("/", ".")}.${randomBytes(ID_BYTES).toString("hex")}`;
}

/** @returns undefined for a text that is no session's id. */
export function rolloutOfSession(id: string): SessionRollout | undefined {
  const [, runId, slot] = FORM.exec(id) ?? [];
  return runId === undefined || slot === undefined ? undefined : { runId, slot: parseSlotKey(slot) };
}

/** SHA-256 of a session's key. As the key is random and long, nobody can find it from its digest. */
export function keyDigest(key: string): Uint8Array {
  return createHash("sha256").update(key).digest();
}
