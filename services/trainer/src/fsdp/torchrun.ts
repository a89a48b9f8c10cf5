/** Starts ranks on the trainer's own node: the program, its arguments and its environment. */
import os from "node:os";
import { fileURLToPath } from "node:url";
import type { TorchHost } from "./fsdp-config.ts";

/** The Python package of the workers. */
const PACKAGE_FOLDER = fileURLToPath(new URL("../../torch", import.meta.url));
/** Above the trainer's own deadline, which ends the group first and says which call it was. */
const COLLECTIVE_MARGIN_SECONDS = 60;

/** Where the ranks of a group are: as many on each of its nodes. */
export interface RankPlaces {
  /** A name that no other group of this trainer has. */
  readonly group: string;
  /** 1 = only the trainer's own node. */
  readonly numNodes: number;
  readonly ranksPerNode: number;
  /** Port of the rendezvous on the trainer's node; unused with one node. */
  readonly port: number;
}

/** Arguments of the interpreter that start the ranks of this node. */
export function launchArguments(
  { group, numNodes, ranksPerNode, port }: RankPlaces,
  host: TorchHost,
): string[] {
  const alone = ["-m", "hone_fsdp.launch", `--ranks=${ranksPerNode}`];
  if (numNodes === 1) return alone;
  return [
    ...alone,
    `--nodes=${numNodes}`,
    "--node=0",
    // The rendezvous listens on every address; this is where it is from here.
    "--address=127.0.0.1",
    `--port=${port}`,
    `--group=${group}`,
    `--seconds=${secondsOf(host.startDeadlineMs)}`,
  ];
}

/** The settings that ranks get on every node. */
export function rankSettings(host: TorchHost) {
  return {
    device: host.device,
    threadsPerRank: host.threadsPerWorker,
    collectiveSeconds: secondsOf(host.callDeadlineMs) + COLLECTIVE_MARGIN_SECONDS,
    startSeconds: secondsOf(host.startDeadlineMs),
  };
}

/** The host's environment with what ranks of this node need. */
export function rankEnvironment(host: TorchHost, { numNodes }: RankPlaces, socketPath: string) {
  const { device, threadsPerRank, collectiveSeconds } = rankSettings(host);
  return {
    OMP_NUM_THREADS: String(threadsPerRank),
    // Ranks of one host connect over it, whatever the host's name resolves to.
    ...(numNodes === 1 && os.platform() === "linux" ? { GLOO_SOCKET_IFNAME: "lo" } : {}),
    ...packageEnvironment(host.environment),
    PYTHONUNBUFFERED: "1",
    HONE_FSDP_SOCKET: socketPath,
    HONE_FSDP_DEVICE: device,
    HONE_FSDP_COLLECTIVE_SECONDS: String(collectiveSeconds),
  };
}

/** An environment in which the interpreter finds the workers' package. */
export function packageEnvironment(environment: TorchHost["environment"]): TorchHost["environment"] {
  return { ...environment, PYTHONPATH: PACKAGE_FOLDER, PYTHONDONTWRITEBYTECODE: "1" };
}

function secondsOf(ms: number): number {
  return Math.ceil(ms / 1_000);
}
