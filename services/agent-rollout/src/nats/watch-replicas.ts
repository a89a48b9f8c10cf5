/** Keeps the directory of replicas up to date with the bucket REPLICAS. */

import type { ReplicaDirectory } from "@hone/agents";
import { BucketName, type Bus, openBucket } from "@hone/messaging";
import { ReplicaStateSchema } from "@hone/proto-gen/policy";
import type { Logger } from "@hone/telemetry";

/** Follows the bucket until the signal aborts. */
export async function watchReplicas(
  bus: Bus,
  directory: ReplicaDirectory,
  options: { signal: AbortSignal; logger: Logger },
): Promise<void> {
  const { signal, logger } = options;
  const bucket = await openBucket(bus, BucketName.replicas, ReplicaStateSchema);
  const onError = (error: unknown) =>
    logger.warn("the states of replicas cannot be followed at the moment", { error });
  void (async () => {
    for await (const change of bucket.watch(signal, onError)) directory.apply(change);
  })();
}
