/**
 * A pod as a process of this machine: started by its manifest, probed by its manifest, started again when it ends.
 *
 * K1: the command, the variables, the files and the ports are the manifest's; nothing else is handed in but PATH and
 *     what stands in for network and DNS (pod-preload.ts).
 * K2: a container that ends by itself is started again, as restartPolicy Always says; each time is counted.
 * K3: a liveness probe that fails as often as the manifest allows is noted: a kubelet would have killed the pod.
 * K4: a pod that is deleted has its preStop hook first, then SIGTERM, and SIGKILL when its grace period is over; the period
 *     begins with the hook.
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
  /** JSON of name -> addresses. */
  readonly hostsFile: string;
  /** Programs of images that are found elsewhere here: name -> path, and arguments that stand in for the pod's network. */
  readonly programs: Readonly<
    Record<string, { readonly path: string; readonly extraArgs?: readonly string[] }>
  >;
}

const PRELOAD = path.join(import.meta.dirname, "pod-preload.ts");
/** A kubelet begins with 10 s. */
const RESTART_PAUSE_MS = 1_000;
/** A pod is ready within what its readiness probe bears, many times over: it waits for bus and database. */
const READY_DEADLINE_MS = 240_000;
const run = promisify(execFile);

export class Pod {
  readonly plan: PodPlan;
  readonly #options: PodOptions;
  readonly #container: Manifest;
  #child: Child | undefined;
  #life = new AbortController();
  #keeping: Promise<void> = Promise.resolve();
  /** Ends that nobody asked for (K2). */
  restarts = 0;
  /** When liveness would have killed it (K3). */
  readonly livenessDeaths: string[] = [];

  constructor(plan: PodPlan, options: PodOptions) {
    this.plan = plan;
    this.#options = options;
    this.#container = plan.spec.containers[0];
  }

  get logFile(): string {
    return path.join(this.#options.folder, "logs", `${this.plan.name}.log`);
  }

  /** Starts it, as a new pod: what lay in no claim is gone. */
  async start(): Promise<void> {
    this.#life = new AbortController();
    const spawn = await this.#prepare();
    this.#child = await spawn();
    const { signal } = this.#life;
    this.#keeping = Promise.all([this.#keepRunning(spawn, signal), this.#watchLiveness(signal)]).then(
      () => undefined,
    );
  }

  /** Runs it as a pod that is never restarted. */
  async runOnce(): Promise<ChildExit> {
    const spawn = await this.#prepare();
    this.#child = await spawn();
    return this.#child.exited;
  }

  /** K1. Makes the volumes. @returns what starts the container. */
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
    if (program === undefined) throw new Error(`nothing here can be ${name}, a program of ${this.plan.name}`);
    return program;
  }

  /** By startup and readiness probe. @throws with the end of its log. */
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

  /** As when its node is lost. */
  async kill(): Promise<void> {
    await this.#end(0);
  }

  /** SIGTERM, and the grace period of the manifest: the end of a test, for which no hook is waited for. */
  async stop(): Promise<void> {
    await this.#end(this.#graceMs);
  }

  /** K4: as when it is deleted, or replaced by a rolling update. @returns how its process ended. */
  async delete(): Promise<ChildExit | undefined> {
    this.#life.abort(); // A container that ends now is not started again.
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
    // The container's own process is 1 there.
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
