/**
 * The users of an embedded bus. Passwords are random and stored in the bus's folder, which only its owner may enter. They stay
 * the same over restarts, so that connected clients can reconnect.
 */

import { randomBytes } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PRIVATE_FILE } from "../private-files.ts";
import { isErrno } from "../processes/process-identity.ts";

/** A user of the bus. */
export interface NatsUser {
  /** Letters, digits, `_` and `-`. */
  readonly name: string;
  /** Its rights. @default all */
  readonly rights?: { readonly publish: readonly string[]; readonly subscribe: readonly string[] };
  /** Its account, if the bus has several. */
  readonly account?: string;
}

/** An account of a bus that has several: one holds the streams, and each user is in one. */
export interface NatsAccount {
  readonly holdsStreams: boolean;
  /** In the format of the server's configuration. */
  readonly exports: readonly object[];
  readonly imports: readonly object[];
}

export interface KnownUser extends NatsUser {
  readonly password: string;
}

/** Address and user, in the form that the client library takes. */
export interface ServerLogin {
  readonly servers: string;
  readonly user: string;
  readonly pass: string;
}

/** The user for checking whether a server has its streams. */
export const WATCHER = "watcher";
const WATCHER_USER: NatsUser = {
  name: WATCHER,
  rights: { publish: ["$JS.API.INFO"], subscribe: ["_INBOX.>"] },
};
const EVERYTHING: NatsUser = { name: "hone" };
const PASSWORD_BYTES = 24;

/** Reads the passwords in a folder, and creates those that are missing. @returns the users in their order, and the watcher. */
export async function natsUsers(
  folder: string,
  [first, ...others]: readonly [NatsUser, ...NatsUser[]] = [EVERYTHING],
): Promise<[KnownUser, ...KnownUser[]]> {
  const file = join(folder, "passwords.json");
  const known = await readPasswords(file);
  const withPassword = (user: NatsUser): KnownUser => {
    const password = known[user.name] ?? randomBytes(PASSWORD_BYTES).toString("base64url");
    return { ...user, password };
  };
  const users: [KnownUser, ...KnownUser[]] = [
    withPassword(first),
    ...[...others, WATCHER_USER].map(withPassword),
  ];
  const passwords = { ...known, ...Object.fromEntries(users.map(({ name, password }) => [name, password])) };
  await writeFile(`${file}.new`, `${JSON.stringify(passwords)}\n`, { mode: PRIVATE_FILE });
  await rename(`${file}.new`, file);
  return users;
}

/** @returns the password of a user. */
export function passwordOf(users: readonly KnownUser[], name: string): string {
  const user = users.find((each) => each.name === name);
  if (user === undefined) throw new TypeError(`the bus has no user ${name}`);
  return user.password;
}

/** @returns the users for the server's configuration, in their accounts if there are several. JSON is valid there. */
export function usersBlock(
  users: readonly KnownUser[],
  accounts?: Readonly<Record<string, NatsAccount>>,
): string {
  if (accounts === undefined) return `authorization ${usersList(users)}\n`;
  const blocks = Object.entries(accounts).map(([name, { holdsStreams, exports, imports }]) => {
    const own = users.filter((user) => (user.account === undefined ? holdsStreams : user.account === name));
    const lists = `exports: ${JSON.stringify(exports)}, imports: ${JSON.stringify(imports)}`;
    return `  ${JSON.stringify(name)} ${usersList(own, `${holdsStreams ? "jetstream: enabled, " : ""}${lists}, `)}`;
  });
  return `accounts {\n${blocks.join("\n")}\n}\n`;
}

function usersList(users: readonly KnownUser[], before = ""): string {
  const lines = users.map(({ name, password, rights }) => {
    const allowed = (subjects: readonly string[]) => `{ allow: ${JSON.stringify(subjects)} }`;
    const permissions =
      rights === undefined
        ? ""
        : `, permissions: { publish: ${allowed(rights.publish)}, subscribe: ${allowed(rights.subscribe)} }`;
    return `  { user: ${JSON.stringify(name)}, password: ${JSON.stringify(password)}${permissions} }`;
  });
  return `{ ${before}users: [\n${lines.join("\n")}\n] }`;
}

/** Reads the stored passwords. Damaged or missing ones are created again, as nothing is connected when the server starts. */
async function readPasswords(file: string): Promise<Readonly<Record<string, string>>> {
  try {
    const read: unknown = JSON.parse(await readFile(file, "utf8"));
    if (typeof read !== "object" || read === null) return {};
    return Object.fromEntries(Object.entries(read).filter(([, value]) => isPassword(value)));
  } catch (error) {
    if (isErrno(error, "ENOENT") || error instanceof SyntaxError) return {};
    throw error;
  }
}

/** Whether a value is a password, with only characters that need no escaping in an address. */
function isPassword(value: unknown): value is string {
  return typeof value === "string" && /^[A-Za-z0-9_-]{16,}$/.test(value);
}
