/**
 * The bus: subjects, streams, and typed ways to publish, ask, answer and consume over NATS.
 *
 * Start reading at `subjects.ts` and `streams.ts`.
 */

export {
  type ConsumerBacklog,
  consumerBacklog,
  runsIn,
  type StreamRoom,
  streamRoom,
  subjectCount,
} from "./backlog.ts";
export { type Bucket, type BucketChange, type BucketEntry, openBucket } from "./bucket.ts";
export { type Bus, type BusOptions, connectBus } from "./bus.ts";
export { accountOf, type BusAccount, busAccounts, STREAMS_ACCOUNT, usersIn } from "./bus-accounts.ts";
export { BUS_USERS, type BusRights, type BusUser, busRights, CLIENT, inboxPrefixOf } from "./bus-rights.ts";
export { outcomeFromWire, outcomeToWire, slotFromWire, slotToWire } from "./codecs.ts";
export {
  type ConsumeWorkOptions,
  consumeBytes,
  consumeWork,
  type WorkConsumer,
  type WorkItem,
} from "./consume-work.ts";
export { DeadHeader, type DeadLetters, readDeadLetters } from "./dead-letter.ts";
export { DurableName, makeDurables } from "./durables.ts";
export {
  BusUnavailableError,
  PayloadStoreFullError,
  PayloadTooLargeError,
  RevisionConflictError,
  StreamFullError,
  translateBusError,
  UndecodableMessageError,
} from "./errors.ts";
export { followOrdered } from "./follow-ordered.ts";
export {
  type ProcessedMessage,
  processAttributes,
  type SentMessage,
  sendAttributes,
} from "./message-attributes.ts";
export { MAX_OBJECT_BYTES } from "./objects.ts";
export { decodeBytes } from "./payload.ts";
export { removeOldPayloads } from "./payload-janitor.ts";
export {
  EPISODES_SHARE,
  PAYLOAD_WRITERS,
  type PayloadWriter,
  payloadStoreBytes,
  payloadStoreOf,
  payloadWriterOf,
} from "./payload-stores.ts";
export { type PublishOptions, publishBytes, publishStored } from "./publish.ts";
export { purgeEpisodes } from "./purge-episodes.ts";
export { readMessages } from "./read-messages.ts";
export { type OrderedItem, type ReadOrderedOptions, readOrdered } from "./read-ordered.ts";
export { type RequestOptions, type RequestStreamOptions, request, requestStream } from "./request.ts";
export { type IncomingRequest, type Responder, type RespondOptions, respond } from "./respond.ts";
export { type ServerAddress, splitCredentials } from "./server-address.ts";
export {
  type AskHealthOptions,
  askHealth,
  type OwnHealth,
  respondToHealth,
  type ServiceHealth,
} from "./service-health.ts";
export type { Stored } from "./store-message.ts";
export type { OldSize, TopologyOptions } from "./streams.ts";
export {
  BucketName,
  EPISODES_MAX_BYTES,
  ensureTopology,
  REPLICA_TTL_MS,
  StreamName,
} from "./streams.ts";
export { StreamsRole } from "./streams-role.ts";
export {
  EventKind,
  isSubjectToken,
  lastKeyOf,
  modelOfSubject,
  RunControl,
  runOfEvent,
  ServiceName,
  subjects,
  ValidatingService,
} from "./subjects.ts";
export { extractTrace, injectTrace } from "./trace-headers.ts";
export { dropUnread, tellUnread, unreadRollouts } from "./unread-rollouts.ts";
