/** What a container for a model's commands may and may not do, as the Docker Engine API takes it. */

/** How a run wants its container. */
export interface ContainerSpec {
  /** Name of an image that is there already. */
  readonly image: string;
  /** Memory of everything in the container, with its files. */
  readonly memoryMib: number;
  readonly cpus: number;
  /** Most processes and threads. */
  readonly maxProcesses: number;
  /** Writable folder, in which commands begin; an absolute path. */
  readonly workFolder: string;
  /** Most bytes in each of the two writable folders, the work folder and /tmp. */
  readonly workMib: number;
  /** Folder of the image whose files are copied into the work folder; undefined = it begins empty. */
  readonly copyFrom: string | undefined;
  /** User and group as numbers, such as `1000:1000`; never 0. */
  readonly user: string;
  /** The container ends by itself after this time, should nobody remove it. */
  readonly lifeMs: number;
}

/** Labels by which containers of Hone are found again. */
export const Label = {
  /** The service that made it, across its restarts. */
  owner: "dev.hone.owner",
  /** The process that made it. */
  process: "dev.hone.process",
  /** Unix milliseconds after which it is of no use to anybody. */
  until: "dev.hone.until",
} as const;

const MEBIBYTE = 1024 * 1024;
const NANOS = 1_000_000_000;
const MS_PER_SECOND = 1_000;
/**
 * The first process of the container. It ends after the time that it is given, which no command can change: it makes no further
 * process, and belongs to a user whose processes commands may not signal. Waiting, it takes in the processes whose parents are
 * gone, so that they leave no zombies.
 */
const FIRST_PROCESS = 'sleep "$1" & wait';
/** Users of the first process, of which commands run as another one. */
const FIRST_USERS = ["65533:65533", "65532:65532"] as const;

/**
 * The body of a request to create it: no network, no capability, no new privileges, a root that cannot be written, two writable
 * folders in memory, and bounds of memory, processor time and processes. Nothing of the machine is mounted.
 * @param imageId digest of the image, so that it is the one that is recorded.
 */
export function createBody(
  spec: ContainerSpec,
  imageId: string,
  labels: Readonly<Record<string, string>>,
): unknown {
  const memory = spec.memoryMib * MEBIBYTE;
  const folder = `rw,exec,nosuid,nodev,mode=1777,size=${spec.workMib}m`;
  return {
    Image: imageId,
    Entrypoint: ["/bin/sh"],
    Cmd: ["-c", FIRST_PROCESS, "hone", `${Math.ceil(spec.lifeMs / MS_PER_SECOND)}`],
    User: spec.user.startsWith("65533:") ? FIRST_USERS[1] : FIRST_USERS[0],
    WorkingDir: spec.workFolder,
    // Git refuses folders that another user owns, and files that were copied may be.
    Env: [
      `HOME=${spec.workFolder}`,
      "GIT_CONFIG_COUNT=1",
      "GIT_CONFIG_KEY_0=safe.directory",
      "GIT_CONFIG_VALUE_0=*",
    ],
    Labels: labels,
    NetworkDisabled: true,
    Tty: false,
    OpenStdin: false,
    HostConfig: {
      NetworkMode: "none",
      IpcMode: "private",
      Privileged: false,
      ReadonlyRootfs: true,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      Memory: memory,
      // The same as the memory: no swap.
      MemorySwap: memory,
      NanoCpus: Math.round(spec.cpus * NANOS),
      PidsLimit: spec.maxProcesses,
      Tmpfs: { [spec.workFolder]: folder, ...(spec.workFolder !== "/tmp" && { "/tmp": folder }) },
      LogConfig: { Type: "none" },
      RestartPolicy: { Name: "no" },
    },
  };
}
