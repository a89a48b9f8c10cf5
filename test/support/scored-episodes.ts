/** Reads the scored episodes of a run as they come: what an ended run no longer needs is purged. */

import { deadline } from "@hone/core";
import { type Bus, readOrdered, StreamName, subjects } from "@hone/messaging";
import { type ScoredEpisode, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";

export interface ScoredEpisodesOptions {
  /** Name of the run; of several runs of one name, all. */
  readonly run: string;
  readonly count: number;
  readonly deadlineMs: number;
}

/** @returns the first episodes that a run trains on, in the order in which they were scored. */
export function scoredEpisodes(
  bus: Bus,
  { run, count, deadlineMs }: ScoredEpisodesOptions,
): Promise<ScoredEpisode[]> {
  return deadline("the scored episodes", deadlineMs, async (signal) => {
    const episodes: ScoredEpisode[] = [];
    const options = { stream: StreamName.episodes, filter: subjects.rolloutScored("*"), signal };
    for await (const { message } of readOrdered(bus, ScoredEpisodeSchema, options)) {
      const { slot, runId = "" } = message.episode ?? {};
      const isOfRun = runId.slice(0, runId.lastIndexOf("-")) === run;
      if (slot?.split === "train" && isOfRun) episodes.push(message);
      if (episodes.length === count) break;
    }
    return episodes;
  });
}
