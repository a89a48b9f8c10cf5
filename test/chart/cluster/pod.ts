/**
 * A pod as a process of this machine, which is started, probed and restarted as its manifest says.
 *
 * K1: the command, the variables, the files and the ports are the manifest's. Only PATH and the replacement for network and
 *     DNS (pod-preload.ts) are added.
 * K2: a container that ends by itself is restarted, as with restartPolicy Always; restarts are counted.
 * K3: a liveness probe that fails as often as the manifest allows is noted, because a kubelet would have killed the pod.
 * K4: when a pod is deleted, its preStop hook runs first, then SIGTERM is sent, and SIGKILL when the grace period is over;
 *     the period begins with the hook.
 */

import { execFile } from "node:child_process";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { delay, pause } from "@hone/core";
import { type Child, type ChildExit, logTail, spawnChild } from "@hone/embedded";
import type { Manifest } from "../helm.ts";
import type { PodPlan } from "./hosts.ts";
import { containerEnvironment, type MountOptions, mountVolumes, rewrite } from "./mounts.ts";
import { budgetMs, probe, untilPassing } from "./probes.ts";

export interface PodOptions extends MountOptions {
  /** JSON file of the cluster's DNS, from name to addresses. */
  readonly hostsFile: string;
  /** Where the programs of images are on this machine, and arguments that replace the pod's network. */
  readonly programs: Readonly<
    Record<string, { readonly path: string; readonly extraArgs?: readonly string[] }>
  >;
}

const PRELOAD = path.join(import.meta.dirname, "pod-preload.ts");
/** A kubelet begins with 10 s. */
const RESTART_PAUSE_MS = 1_000;
/** Much longer than a readiness probe allows, as a pod waits for bus and database. */
const READY_DEADLINE_MS = 240_000;
const run = promisify(execFile);

export class Pod {
  readonly plan: PodPlan;
  readonly #options: PodOptions;
  readonly #container: Manifest;
  #child: Child | undefined;
  #life = new AbortController();
  #keeping: Promise<void> = Promise.resolve();
  /** Number of restarts (K2). */
  restarts = 0;
  /** Times at which a kubelet would have killed the pod (K3). */
  readonly livenessDeaths: string[] = [];

  constructor(plan: PodPlan, options: PodOptions) {
    this.plan = plan;
    this.#options = options;
    this.#container = plan.spec.containers[0];
  }

  get logFile(): string {
    return path.join(this.#options.folder, "logs", `${this.plan.name}.log`);
  }

  /** Starts a new pod: only files in claims are kept. */
  async start(): Promise<void> {
    this.#life = new AbortController();
    const spawn = await this.#prepare();
    this.#child = await spawn();
    const { signal } = this.#life;
    this.#keeping = Promise.all([this.#keepRunning(spawn, signal), this.#watchLiveness(signal)]).then(
      () => undefined,
    );
  }

  /** Runs the pod until it ends, without restarts. */
  async runOnce(): Promise<ChildExit> {
    const spawn = await this.#prepare();
    this.#child = await spawn();
    return this.#child.exited;
  }

  /** Makes the volumes. @returns a function that starts the container (K1). */
  async #prepare(): Promise<() => Promise<Child>> {
    const { plan } = this;
    const map = await mountVolumes(plan, this.#container, this.#options);
    const env = containerEnvironment(plan, this.#container, this.#options.manifests, map);
    const [name = "", ...args] = [...(this.#container.command ?? []), ...(this.#container.args ?? [])].map(
      (each) => rewrite(String(each), map),
    );
    const program = this.#programOf(name);
    return () =>
      spawnChild({
        name: plan.name,
        command: program.path,
        args: [...args, ...(program.extraArgs ?? []).map((each) => each.replace("{address}", plan.address))],
        env: {
          PATH: process.env.PATH,
          ...env,
          NODE_OPTIONS: `--import ${pathToFileURL(PRELOAD).href}`,
          HONE_TEST_POD_ADDRESS: plan.address,
          HONE_TEST_HOSTS: this.#options.hostsFile,
        },
        cwd: this.#options.folder,
        logFile: this.logFile,
      });
  }

  #programOf(name: string) {
    const program = this.#options.programs[name];
    if (program === undefined)
      throw new Error(`this machine has no program for ${name} of ${this.plan.name}`);
    return program;
  }

  /** Waits for the startup and the readiness probe. @throws with the end of its log. */
  async untilReady(): Promise<void> {
    const { signal } = this.#life;
    const { startupProbe, readinessProbe } = this.#container;
    const at = this.plan.address;
    const started = await untilPassing(at, this.#container, startupProbe, {
      deadlineMs: budgetMs(startupProbe),
      signal,
    });
    const isReady =
      started &&
      (await untilPassing(at, this.#container, readinessProbe, { deadlineMs: READY_DEADLINE_MS, signal }));
    if (!isReady) {
      throw new Error(
        `${this.plan.name} did not become ready (started: ${started})\n${logTail(this.logFile, 30)}`,
      );
    }
  }

  /** Kills the pod, as when its node is lost. */
  async kill(): Promise<void> {
    await this.#end(0);
  }

  /** Ends the pod after a test: SIGTERM and the manifest's grace period, but no preStop hook. */
  async stop(): Promise<void> {
    await this.#end(this.#graceMs);
  }

  /** Deletes the pod, as a rolling update does (K4). @returns how its process ended. */
  async delete(): Promise<ChildExit | undefined> {
    this.#life.abort(); // A container that ends from now on is not restarted.
    const began = performance.now();
    await this.#preStop();
    return this.#end(Math.max(1, this.#graceMs - (performance.now() - began)));
  }

  get #graceMs(): number {
    return this.plan.spec.terminationGracePeriodSeconds * 1_000;
  }

  async #preStop(): Promise<void> {
    const { sleep, exec } = this.#container.lifecycle?.preStop ?? {};
    if (sleep !== undefined) await delay(sleep.seconds * 1_000);
    const pid = this.#child?.pid;
    if (exec === undefined || pid === undefined) return;
    const [name = "", ...args] = exec.command as string[];
    // In the container, its process has id 1.
    const own = args.map((each) => each.replace(/=1$/, `=${pid}`));
    await run(this.#programOf(name).path, own, { timeout: this.#graceMs });
  }

  async #end(graceMs: number): Promise<ChildExit | undefined> {
    this.#life.abort();
    const child = this.#child;
    if (child !== undefined && graceMs === 0) process.kill(-child.pid, "SIGKILL");
    else await child?.stop({ graceMs });
    await this.#keeping;
    return child?.exited;
  }

  /** K2 */
  async #keepRunning(spawn: () => Promise<Child>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#child?.exited;
      if (signal.aborted) return;
      this.restarts++;
      await pause(RESTART_PAUSE_MS, signal);
      if (!signal.aborted) this.#child = await spawn();
    }
  }

  /** K3 */
  async #watchLiveness(signal: AbortSignal): Promise<void> {
    const { startupProbe, livenessProbe } = this.#container;
    const at = this.plan.address;
    const deadlineMs = budgetMs(startupProbe);
    await untilPassing(at, this.#container, startupProbe, { deadlineMs, signal }).catch(() => false);
    let failures = 0;
    while (!signal.aborted) {
      await pause(livenessProbe.periodSeconds * 1_000, signal);
      if (signal.aborted) return;
      failures = (await probe(at, this.#container, livenessProbe)) ? 0 : failures + 1;
      if (failures === livenessProbe.failureThreshold) this.livenessDeaths.push(new Date().toISOString());
    }
  }
}
