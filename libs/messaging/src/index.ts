/**
 * The bus: subjects, streams, and typed functions to publish, request, respond and consume over NATS.
 *
 * Start reading at `subjects.ts` and `streams.ts`.
 */

export { type Bus, type BusOptions, connectBus } from "./bus.ts";
export {
  BusUnavailableError,
  PayloadStoreFullError,
  PayloadTooLargeError,
  RevisionConflictError,
  StreamFullError,
  translateBusError,
  UndecodableMessageError,
} from "./errors.ts";
export {
  type ProcessedMessage,
  processAttributes,
  type SentMessage,
  sendAttributes,
} from "./exchange/message-attributes.ts";
export { type PublishOptions, publishBytes, publishStored } from "./exchange/publish.ts";
export {
  type RequestOptions,
  type RequestStreamOptions,
  request,
  requestStream,
} from "./exchange/request.ts";
export { type IncomingRequest, type Responder, type RespondOptions, respond } from "./exchange/respond.ts";
export {
  type AskHealthOptions,
  askHealth,
  type OwnHealth,
  respondToHealth,
  type ServiceHealth,
} from "./exchange/service-health.ts";
export type { Stored } from "./exchange/store-message.ts";
export { extractTrace, injectTrace } from "./exchange/trace-headers.ts";
export { latestMessage } from "./follow/follow-messages.ts";
export { followOrdered } from "./follow/follow-ordered.ts";
export { type KeptEpisodes, keepFinished, keepFinishedOf } from "./follow/kept-episodes.ts";
export { MissingMessageError, readMessages } from "./follow/read-messages.ts";
export {
  type OrderedItem,
  type ReadBody,
  type ReadOrderedOptions,
  readOrdered,
  readOrderedBodies,
} from "./follow/read-ordered.ts";
export { episodeReader, type WholeEpisode, wholeEpisode } from "./follow/whole-episode.ts";
export {
  onNewVersionFromWire,
  onNewVersionToWire,
  outcomeFromWire,
  outcomeToWire,
  quantizationFromWire,
  quantizationToWire,
  samplingFromWire,
  slotFromWire,
  slotToWire,
} from "./payloads/codecs.ts";
export { MAX_OBJECT_BYTES } from "./payloads/objects.ts";
export { decodeBytes } from "./payloads/payload.ts";
export { removeOldPayloads } from "./payloads/payload-janitor.ts";
export {
  EPISODES_SHARE,
  PAYLOAD_WRITERS,
  type PayloadWriter,
  payloadStoreBytes,
  payloadStoreOf,
  payloadWriterOf,
} from "./payloads/payload-stores.ts";
export { busTimeMs } from "./rewards/bus-time.ts";
export {
  dropRewards,
  type OpenRewards,
  openRewardsOf,
  runsWithRewards,
} from "./rewards/open-rewards.ts";
export { givenRewardKey, OPEN_REWARDS, openRewardKey, rewardedRunKey } from "./rewards/reward-keys.ts";
export { accountOf, type BusAccount, busAccounts, STREAMS_ACCOUNT, usersIn } from "./rights/bus-accounts.ts";
export {
  BUS_USERS,
  type BusRights,
  type BusUser,
  busRights,
  CLIENT,
  inboxPrefixOf,
  SENDING_USERS,
  SINKS,
} from "./rights/bus-rights.ts";
export { type ServerAddress, splitCredentials } from "./rights/server-address.ts";
export { StreamsRole } from "./rights/streams-role.ts";
export {
  type ConsumerBacklog,
  consumerBacklog,
  rolloutQueues,
  runsIn,
  type StreamRoom,
  streamRoom,
  subjectCount,
} from "./streams/backlog.ts";
export { type Bucket, type BucketChange, type BucketEntry, openBucket } from "./streams/bucket.ts";
export {
  DurableName,
  durableOfSink,
  EventSinkDurable,
  type EventSinkName,
  isSinkInOrder,
  makeDurables,
} from "./streams/durables.ts";
export { purgeEpisodes } from "./streams/purge-episodes.ts";
export type { OldSize, TopologyOptions } from "./streams/streams.ts";
export {
  BucketName,
  EPISODES_MAX_BYTES,
  ensureTopology,
  REPLICA_TTL_MS,
  StreamName,
} from "./streams/streams.ts";
export { dropUnread, reportUnread, unreadRollouts } from "./streams/unread-rollouts.ts";
export {
  EventKind,
  isSubjectToken,
  lastKeyOf,
  modelOfSubject,
  RewardGiver,
  RunControl,
  runOfEvent,
  ServiceName,
  subjects,
  ValidatingService,
} from "./subjects.ts";
export {
  type ConsumeWorkOptions,
  consumeBytes,
  consumeWork,
  type WorkConsumer,
  type WorkItem,
} from "./work/consume-work.ts";
export { DeadHeader, type DeadLetters, readDeadLetters } from "./work/dead-letter.ts";
