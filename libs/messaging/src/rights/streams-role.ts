/** Whether a service creates streams and their shared consumers. */
export const StreamsRole = {
  /** Creates those that are missing, and updates the settings of the others. */
  make: "make",
  /** Waits until another service has created them; needs no right to change a stream or to create a consumer. */
  await: "await",
} as const;
export type StreamsRole = (typeof StreamsRole)[keyof typeof StreamsRole];
