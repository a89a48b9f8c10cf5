/**
 * The accounts of a bus on which a service that was taken over is held off by the server: made of the table of rights
 * (bus-rights.ts), and of nothing else.
 *
 * The server answers to whatever subject a question names as its reply, whoever may publish there. In an account of its own a
 * service may name what it likes: the answer stays in that account, and goes on from there only where the service might have
 * published itself.
 *
 * A1: one account holds the streams, and the trainer, which alone makes them. Every other user has an account of its own.
 * A2: what a user may publish and streams or their server take, its account imports as a service of the streams' account.
 * A3: what a user may publish and another one answers, its account imports as a service of the other one's account.
 * A4: what is told to many while it is stored is a stream of the account of whoever publishes it: the server hands nothing on
 *     as a stream that came as a service.
 * A5: within its account a user has the rights of the table, and may answer: the server renames the subject of an answer.
 * A6: servers before 2.11 take one import of a subject, and none whose subjects overlap does what both would: what another
 *     import covers is left out, and what overlaps otherwise is refused here.
 */

import { storedSubjects } from "../streams/streams.ts";
import { ServiceName, subjects } from "../subjects.ts";
import { BUS_USERS, type BusRights, type BusUser, busRights, inboxPrefixOf } from "./bus-rights.ts";

/** Holds the streams (A1). The names of the others begin with it. */
export const STREAMS_ACCOUNT = "HONE";

/** Part of an account, in the words of nats-server's configuration. */
export type AccountExport =
  | { readonly stream: string; readonly accounts: readonly string[] }
  | {
      readonly service: string;
      readonly accounts: readonly string[];
      readonly response_type: "Singleton" | "Stream";
      /** How long the server keeps the way back of an answer, counted from the last one. */
      readonly response_threshold: string;
    };

/** Part of an account, in the words of nats-server's configuration. */
export type AccountImport =
  | { readonly stream: { readonly account: string; readonly subject: string } }
  | { readonly service: { readonly account: string; readonly subject: string } };

/** One account of the bus. */
export interface BusAccount {
  readonly holdsStreams: boolean;
  /** A5 */
  readonly users: Readonly<Partial<Record<BusUser, BusRights>>>;
  readonly exports: readonly AccountExport[];
  readonly imports: readonly AccountImport[];
}

/** What the server calls the answers to a question that came from another account (A5). */
const RENAMED_ANSWERS = "_R_.>";
/** Of the server itself: questions to JetStream, and acknowledgements. */
const OF_JETSTREAM = ["$JS.>"];
/** Questions that are answered by more than one message, or by more than one process. */
const ANSWERED_OFTEN = [
  "$JS.API.CONSUMER.MSG.NEXT.>",
  "hone.v1.policy.generate.*.*",
  subjects.serviceHealth("*"),
];
/** Streams answer within seconds, and signs of life of a generation come more often; each keeps its way back. */
const SOON = "2m";
/** Judges compare a group for as long as the run allows them. A way back that was used is gone at once. */
const LATE = "24h";

/** The account of a user. */
export function accountOf(user: BusUser): string {
  return user === ServiceName.trainer ? STREAMS_ACCOUNT : `${STREAMS_ACCOUNT}-${user}`;
}

/** Every account by its name. @throws {TypeError} for rights of which no accounts can be made (A6). */
export function busAccounts(
  rights: Readonly<Record<BusUser, BusRights>> = busRights(),
): Readonly<Record<string, BusAccount>> {
  const ways = BUS_USERS.flatMap((user) => waysOf(user, rights));
  const names = [...new Set(BUS_USERS.map(accountOf))];
  return Object.fromEntries(names.map((name) => [name, accountWith(name, ways, rights)]));
}

/** A user with its place, as a server that a test starts takes it. */
export interface BusUserInAccount {
  readonly name: BusUser;
  readonly account: string;
  readonly rights: BusRights;
}

/** Every user of some accounts. */
export function usersIn(accounts: Readonly<Record<string, BusAccount>>): BusUserInAccount[] {
  return BUS_USERS.flatMap((name) => {
    const account = accountOf(name);
    const rights = accounts[account]?.users[name];
    return rights === undefined ? [] : [{ name, account, rights }];
  });
}

/** A subject that leads from the account of whoever publishes to that of whoever hears it. */
interface Way {
  readonly kind: "service" | "stream";
  readonly subject: string;
  readonly exporter: string;
  readonly importer: string;
}

/** A2 to A4, for what one user publishes. */
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
  // Only what somebody does import.
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

/** A6, for what one account imports. */
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
        `the account ${importer} cannot take ${subject} from ${exporter} and ${clash.subject} from ${clash.exporter}: a message would go both ways; give each a subject of its own in bus-rights.ts`,
      );
    }
    kept.push(way);
  }
  return kept;
}

function isInbox(subject: string): boolean {
  return BUS_USERS.some((user) => subject.startsWith(`${inboxPrefixOf(user)}.`));
}

/** What two subjects with wildcards have in common; undefined where that is nothing. */
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
