/** The largest size of the stream EPISODES, as every program that creates the streams reads it from its environment. */

import { z } from "zod";
import { environmentInteger, readEnvironment } from "./service-env.ts";

/** Space for a few finished and scored episodes of the largest size that is sent in one message, just under a MiB. */
const MIN_EPISODES_BYTES = 4 * 1024 ** 2;
/** 1 PiB: more than any disk has. */
const MAX_EPISODES_BYTES = 1024 ** 5;

/** The variable, for the schema of a service that creates the streams. */
export const episodesShape = {
  HONE_EPISODES_MAX_BYTES: environmentInteger(MIN_EPISODES_BYTES, MAX_EPISODES_BYTES).optional(),
};

/**
 * Reads only this variable, for a program that creates the streams and is not a service.
 * @throws {ConfigError} when its value is not allowed.
 */
export function readEpisodesMaxBytes(
  environment: Readonly<Record<string, string | undefined>>,
): number | undefined {
  return readEnvironment(z.object(episodesShape), environment).HONE_EPISODES_MAX_BYTES;
}
