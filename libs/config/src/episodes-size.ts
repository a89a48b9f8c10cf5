/** The largest size of the stream EPISODES, which whoever makes the streams reads from its environment. */

import { z } from "zod";
import { environmentInteger, readEnvironment } from "./service-env.ts";

/** Room for a few episodes of the largest size that travels as it is, which is just under a MiB, finished and scored. */
const MIN_EPISODES_BYTES = 4 * 1024 ** 2;
/** More than any disk has. */
const MAX_EPISODES_BYTES = 1024 ** 5;

/** The variable, for the schema of a service that makes the streams. */
export const episodesShape = {
  HONE_EPISODES_MAX_BYTES: environmentInteger(MIN_EPISODES_BYTES, MAX_EPISODES_BYTES).optional(),
};

/**
 * The size alone, for a program that makes the streams and is no service.
 * @throws {ConfigError} when the variable is wrong.
 */
export function readEpisodesMaxBytes(
  environment: Readonly<Record<string, string | undefined>>,
): number | undefined {
  return readEnvironment(z.object(episodesShape), environment).HONE_EPISODES_MAX_BYTES;
}
