/** The configuration of the tools that work in a container. */

import { z } from "zod";

const wholeNumber = z.number().int();
/** A name of an image, with its registry and its tag or digest. */
export const imageName = z
  .string()
  .regex(/^[A-Za-z0-9](?:[._:/@-]?[A-Za-z0-9_])*$/, "the name of an image")
  .max(255);
const absolutePath = z.string().regex(/^\/[^\0]{1,1000}$/, "an absolute path");

export const containerConfigSchema = z.strictObject({
  /** Name of an image that the operator allows; absent = every row names one in its `tools_kwargs`. */
  image: imageName.optional(),
  /** Time limit of one command. */
  timeMs: wholeNumber.min(100).max(3_600_000).default(30_000),
  /** Of a longer output, the first and the last half of this are kept, before it is cut to the budget of tokens. */
  maxOutputBytes: wholeNumber.min(100).max(4_194_304).default(65_536),
  memoryMib: wholeNumber.min(16).max(1_048_576).default(1_024),
  cpus: z.number().min(0.1).max(256).default(1),
  /** Most processes and threads. */
  maxProcesses: wholeNumber.min(8).max(32_768).default(256),
  /** Writable folder, where commands begin. */
  workFolder: absolutePath.refine((path) => path !== "/", "a folder below /").default("/workspace"),
  /** Size of the work folder and of /tmp, each. They lie in memory, and count as memory. */
  workMib: wholeNumber.min(1).max(1_048_576).default(256),
  /** Folder of the image whose files the work folder begins with; absent = it begins empty. */
  copyFrom: absolutePath.optional(),
  /** User and group of the commands, as numbers. */
  user: z
    .string()
    .regex(/^[1-9]\d{0,8}:[1-9]\d{0,8}$/, "numbers above 0, such as 1000:1000")
    .default("65534:65534"),
  /** The shell that runs commands. */
  shell: absolutePath.default("/bin/sh"),
  /** After this time a container ends, should nobody remove it; longer than a rollout may take. */
  lifeMs: wholeNumber.min(60_000).max(90_000_000).default(7_200_000),
});
export type ContainerConfig = z.output<typeof containerConfigSchema>;
