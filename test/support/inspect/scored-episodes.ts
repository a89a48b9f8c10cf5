/** Reads the scored episodes of a run while it runs, because they are purged after its end. */

import { deadline } from "@hone/core";
import { type Bus, episodeReader, readOrderedBodies, StreamName, subjects } from "@hone/messaging";
import type { ScoredEpisode } from "@hone/proto-gen/rollout";
import { eventually } from "@hone/testing";

export interface ScoredEpisodesOptions {
  /** Name of the run; runs of the same name are all included. */
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
    for await (const scored of readScored(bus, run, signal)) {
      if (scored.episode?.slot?.split === "train") episodes.push(scored);
      if (episodes.length === count) break;
    }
    return episodes;
  });
}

/** Keeps the scored episodes of all runs of a name until the scope ends. */
export interface KeptEpisodes extends AsyncDisposable {
  /** Resolves with all episodes once there are this many. */
  all(count: number, deadlineMs: number): Promise<readonly ScoredEpisode[]>;
}

/** Keeps every scored episode of a run, those of its evaluations included, in the order in which they were scored. */
export function keepScoredEpisodes(bus: Bus, run: string): KeptEpisodes {
  const over = new AbortController();
  const episodes: ScoredEpisode[] = [];
  const reading = (async () => {
    for await (const scored of readScored(bus, run, over.signal)) episodes.push(scored);
  })();
  return {
    async all(count, deadlineMs) {
      await eventually(`${count} scored episodes`, () => episodes.length >= count, { deadlineMs });
      return episodes;
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      await reading;
    },
  };
}

async function* readScored(bus: Bus, run: string, signal: AbortSignal): AsyncGenerator<ScoredEpisode> {
  const options = {
    stream: StreamName.episodes,
    filter: subjects.rolloutScored("*"),
    signal,
  };
  for await (const { message } of readOrderedBodies(bus, episodeReader(bus), options)) {
    const { runId = "" } = message.episode ?? {};
    if (runId.slice(0, runId.lastIndexOf("-")) === run) yield message;
  }
}
