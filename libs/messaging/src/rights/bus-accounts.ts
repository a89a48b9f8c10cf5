/**
 * The accounts of a bus, which limit the harm that an attacker in control of one service can do. They are derived from the
 * table of rights (bus-rights.ts) alone.
 *
 * The server sends its answers to any reply subject that a request names, also if the requester may not publish there. If each
 * service has its own account, the answer stays in that account, and leaves it only on subjects on which the service may
 * publish itself.
 *
 * A1: one account holds the streams and the trainer, the only user that creates them. Every other user has its own account.
 * A2: subjects that a user may publish and that streams or JetStream receive: its account imports them as a service of the
 *     streams' account.
 * A3: subjects that a user may publish and another user answers: its account imports them as a service of the other account.
 * A4: subjects that are stored and that other users receive as well: these are a stream of the publisher's account, as the
 *     server does not export as a stream what it imported as a service.
 * A5: within its account a user has the rights of the table, and may also answer on the subjects that the server renames.
 * A6: servers before 2.11 allow one import of a subject, and overlapping imports do not work together. An import that another
 *     one covers is left out, and other overlaps are refused here.
 */

import { storedSubjects } from "../streams/streams.ts";
import { ServiceName, subjects } from "../subjects.ts";
import { BUS_USERS, type BusRights, type BusUser, busRights, inboxPrefixOf } from "./bus-rights.ts";

/** The account with the streams (A1). The names of the others begin with it. */
export const STREAMS_ACCOUNT = "HONE";

/** An export of an account, in the format of nats-server's configuration. */
export type AccountExport =
  | { readonly stream: string; readonly accounts: readonly string[] }
  | {
      readonly service: string;
      readonly accounts: readonly string[];
      readonly response_type: "Singleton" | "Stream";
      /** How long the server forwards answers, counted from the last one. */
      readonly response_threshold: string;
    };

/** An import of an account, in the format of nats-server's configuration. */
export type AccountImport =
  | { readonly stream: { readonly account: string; readonly subject: string } }
  | { readonly service: { readonly account: string; readonly subject: string } };

/** One account of the bus. */
export interface BusAccount {
  readonly holdsStreams: boolean;
  /** The account's users with their rights (A5). */
  readonly users: Readonly<Partial<Record<BusUser, BusRights>>>;
  readonly exports: readonly AccountExport[];
  readonly imports: readonly AccountImport[];
}

/** The subjects to which the server renames answers to a request from another account (A5). */
const RENAMED_ANSWERS = "_R_.>";
/** Subjects of the server itself: requests to JetStream, and acknowledgements. */
const OF_JETSTREAM = ["$JS.>"];
/** Requests that are answered by more than one message, or by more than one process. */
const ANSWERED_OFTEN = [
  "$JS.API.CONSUMER.MSG.NEXT.>",
  "hone.v1.policy.generate.*.*",
  subjects.serviceHealth("*"),
];
/** Streams answer within seconds, and a generation sends heartbeats more often than this; each answer renews the time. */
const SOON = "2m";
/** Judges may take as long as the run allows. The server forgets the reply subject of a single answer once it was used. */
const LATE = "24h";

/** @returns the account of a user. */
export function accountOf(user: BusUser): string {
  return user === ServiceName.trainer ? STREAMS_ACCOUNT : `${STREAMS_ACCOUNT}-${user}`;
}

/** @returns all accounts by name. @throws {TypeError} for rights that accounts cannot express (A6). */
export function busAccounts(
  rights: Readonly<Record<BusUser, BusRights>> = busRights(),
): Readonly<Record<string, BusAccount>> {
  const ways = BUS_USERS.flatMap((user) => waysOf(user, rights));
  const names = [...new Set(BUS_USERS.map(accountOf))];
  return Object.fromEntries(names.map((name) => [name, accountWith(name, ways, rights)]));
}

/** A user with its account, for a server that a test starts. */
export interface BusUserInAccount {
  readonly name: BusUser;
  readonly account: string;
  readonly rights: BusRights;
}

/** @returns all users of some accounts. */
export function usersIn(accounts: Readonly<Record<string, BusAccount>>): BusUserInAccount[] {
  return BUS_USERS.flatMap((name) => {
    const account = accountOf(name);
    const rights = accounts[account]?.users[name];
    return rights === undefined ? [] : [{ name, account, rights }];
  });
}

/** A subject that is passed from one account to another. */
interface Way {
  readonly kind: "service" | "stream";
  readonly subject: string;
  readonly exporter: string;
  readonly importer: string;
}

/** @returns the subjects that one user publishes into other accounts (A2 to A4). */
function waysOf(user: BusUser, rights: Readonly<Record<BusUser, BusRights>>): Way[] {
  const own = accountOf(user);
  const published = rights[user].publish.filter((subject) => !isInbox(subject));
  const taken = [...OF_JETSTREAM, ...storedSubjects()];
  const ways: Way[] = published
    .flatMap((subject) => taken.flatMap((each) => intersection(each, subject) ?? []))
    .map((subject) => ({ kind: "service", subject, exporter: STREAMS_ACCOUNT, importer: own }));
  for (const hearer of BUS_USERS) {
    for (const heard of rights[hearer].subscribe.filter((subject) => !isInbox(subject))) {
      const isStored = storedSubjects().some((each) => intersection(each, heard) !== undefined);
      for (const subject of published.map((each) => intersection(each, heard))) {
        if (subject === undefined) continue;
        const [exporter, importer] = [accountOf(hearer), own];
        ways.push(
          isStored
            ? { kind: "stream", subject, exporter: importer, importer: exporter }
            : { kind: "service", subject, exporter, importer },
        );
      }
    }
  }
  return ways.filter(({ exporter, importer }) => exporter !== importer);
}

function accountWith(
  name: string,
  ways: readonly Way[],
  rights: Readonly<Record<BusUser, BusRights>>,
): BusAccount {
  const users = BUS_USERS.filter((user) => accountOf(user) === name).map((user): [BusUser, BusRights] => {
    const { publish, subscribe } = rights[user];
    return [user, { publish: [...new Set([...publish, RENAMED_ANSWERS])], subscribe }];
  });
  const imports = withoutOverlap(ways.filter(({ importer }) => importer === name));
  // Only subjects that another account imports.
  const exported = BUS_USERS.map(accountOf)
    .filter((importer, index, all) => all.indexOf(importer) === index && importer !== name)
    .flatMap((importer) => withoutOverlap(ways.filter((way) => way.importer === importer)))
    .filter(({ exporter }) => exporter === name);
  const bySubject = Map.groupBy(exported, ({ kind, subject }) => `${kind} ${subject}`);
  return {
    holdsStreams: name === STREAMS_ACCOUNT,
    users: Object.fromEntries(users),
    exports: [...bySubject.values()].flatMap(([first, ...more]) =>
      first === undefined
        ? []
        : [
            exportOf(
              first,
              [first, ...more].map(({ importer }) => importer),
            ),
          ],
    ),
    imports: imports.map(({ kind, subject, exporter }) =>
      kind === "stream"
        ? { stream: { account: exporter, subject } }
        : { service: { account: exporter, subject } },
    ),
  };
}

function exportOf({ kind, subject, exporter }: Way, accounts: readonly string[]): AccountExport {
  if (kind === "stream") return { stream: subject, accounts };
  const isOften = ANSWERED_OFTEN.some((each) => isWithin(subject, each));
  return {
    service: subject,
    accounts,
    response_type: isOften ? "Stream" : "Singleton",
    response_threshold: isOften || exporter === STREAMS_ACCOUNT ? SOON : LATE,
  };
}

/** Removes overlaps from the imports of one account (A6). */
function withoutOverlap(ways: readonly Way[]): readonly Way[] {
  const kept: Way[] = [];
  for (const way of ways) {
    const { kind, subject, exporter, importer } = way;
    const isCovered = ways.some(
      (other, index) =>
        other.kind === kind &&
        other.exporter === exporter &&
        isWithin(subject, other.subject) &&
        (other.subject !== subject || index < ways.indexOf(way)),
    );
    if (isCovered) continue;
    const clash = kept.find(
      (other) =>
        other.kind === kind && kind === "service" && intersection(other.subject, subject) !== undefined,
    );
    if (clash !== undefined) {
      throw new TypeError(
        `The account ${importer} cannot import ${subject} from ${exporter} and ${clash.subject} from ${clash.exporter}: a message would go to both; give each a subject of its own in bus-rights.ts`,
      );
    }
    kept.push(way);
  }
  return kept;
}

function isInbox(subject: string): boolean {
  return BUS_USERS.some((user) => subject.startsWith(`${inboxPrefixOf(user)}.`));
}

/** @returns the subjects that two subjects with wildcards have in common; undefined if there are none. */
function intersection(left: string, right: string): string | undefined {
  const [a, b] = [left.split("."), right.split(".")];
  const common: string[] = [];
  for (let i = 0; ; i++) {
    const [x, y] = [a[i], b[i]];
    if (x === undefined && y === undefined) return common.join(".");
    if (x === undefined || y === undefined) return undefined;
    if (x === ">") return [...common, ...b.slice(i)].join(".");
    if (y === ">") return [...common, ...a.slice(i)].join(".");
    if (x !== y && x !== "*" && y !== "*") return undefined;
    common.push(x === "*" ? y : x);
  }
}

function isWithin(subject: string, whole: string): boolean {
  return intersection(subject, whole) === subject;
}
