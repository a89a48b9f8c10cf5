/**
 * The users of an embedded bus. Passwords are random, lie in the bus's folder, which its owner alone may enter, and stay
 * the same over restarts, so that whoever is connected finds a restarted server again.
 */

import { randomBytes } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PRIVATE_FILE } from "../private-files.ts";
import { isErrno } from "../processes/process-identity.ts";

/** Somebody who may enter the bus. */
export interface NatsUser {
  /** Letters, digits, `_` and `-`. */
  readonly name: string;
  /** What it may do. @default everything */
  readonly rights?: { readonly publish: readonly string[]; readonly subscribe: readonly string[] };
  /** Its account, where the bus has several. */
  readonly account?: string;
}

/** An account of a bus that has several: one holds the streams, and each user is in one. */
export interface NatsAccount {
  readonly holdsStreams: boolean;
  /** In the server's own words. */
  readonly exports: readonly object[];
  readonly imports: readonly object[];
}

export interface KnownUser extends NatsUser {
  readonly password: string;
}

/** As the client takes it. */
export interface ServerLogin {
  readonly servers: string;
  readonly user: string;
  readonly pass: string;
}

/** The user by which a server is asked whether it keeps its streams. */
export const WATCHER = "watcher";
const WATCHER_USER: NatsUser = {
  name: WATCHER,
  rights: { publish: ["$JS.API.INFO"], subscribe: ["_INBOX.>"] },
};
const EVERYTHING: NatsUser = { name: "hone" };
const PASSWORD_BYTES = 24;

/** Reads the passwords of a folder, and makes those that are missing. The users in their order, and the watcher. */
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

/** The password of one of them. */
export function passwordOf(users: readonly KnownUser[], name: string): string {
  const user = users.find((each) => each.name === name);
  if (user === undefined) throw new TypeError(`the bus has no user ${name}`);
  return user.password;
}

/** The users in the server's words, in their accounts where there are several. JSON is valid there. */
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

/** What is damaged or missing is made anew: nothing is connected when the server starts. */
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

/** Nothing that would have to be written otherwise in an address. */
function isPassword(value: unknown): value is string {
  return typeof value === "string" && /^[A-Za-z0-9_-]{16,}$/.test(value);
}
