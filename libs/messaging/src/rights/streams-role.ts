/** What a service does about streams and their shared consumers. */
export const StreamsRole = {
  /** Makes what is missing, and brings what is there to its settings. */
  make: "make",
  /** Waits until another service has made them; needs no right to change a stream or to make a consumer. */
  await: "await",
} as const;
export type StreamsRole = (typeof StreamsRole)[keyof typeof StreamsRole];
