/**
 * Makes and removes containers, within what the operator allows.
 *
 * B1: only images that the operator lists, and only those that are on the machine already: nothing is pulled.
 * B2: a container belongs to its maker: one label names the service across its restarts, one this process. At its start a
 *     service removes what earlier processes of its own left, and what nobody can need any more; never what another service's
 *     process uses.
 * B3: there are at most `maxContainers` of this process; a further one waits for a place.
 */

import { randomUUID } from "node:crypto";
import { Semaphore } from "@hone/core";
import { ContainerRefusedError, ContainerRuntimeError } from "../errors.ts";
import { Container, textAt } from "./container.ts";
import { type ContainerSpec, createBody, Label } from "./container-spec.ts";
import { EngineApi } from "./engine-api.ts";

/** What the operator allows. */
export interface ContainerHostOptions {
  /** Unix socket of Docker or Podman. */
  readonly socketPath: string;
  /** Images that may be used: names, or beginnings of names that end in `*`. */
  readonly images: readonly string[];
  /** Name of the service, the same across its restarts and no other service's. */
  readonly owner: string;
  readonly maxContainers: number;
  /** The most that one container may ask for. */
  readonly maxMemoryMib: number;
  readonly maxCpus: number;
}

/** A container that is somebody's, until it is released. */
export interface HeldContainer {
  readonly container: Container;
  /** What was used: the image's name and its digest. */
  readonly image: string;
  /** Removes the container and frees its place. @throws {ContainerRuntimeError} when it cannot be removed. */
  release(): Promise<void>;
}

const OK = 200;
const CREATED = 201;
const NO_CONTENT = 204;
const NOT_MODIFIED = 304;
const NOT_FOUND = 404;
const SETUP_MS = 120_000;
/** The root of the container owns the two folders, whatever rights the runtime gives them; commands run as another user. */
const OPEN_FOLDERS = 'chmod 1777 "$1" "$3"';
/** Files are copied as the user that will change them. */
const COPY_FILES = 'cp -R "$2/." "$1/"';

export class ContainerHost {
  readonly #options: ContainerHostOptions;
  readonly #api: EngineApi;
  readonly #places: Semaphore;
  readonly #process = randomUUID();

  constructor(options: ContainerHostOptions) {
    this.#options = options;
    this.#api = new EngineApi(options.socketPath);
    this.#places = new Semaphore(options.maxContainers);
  }

  /** Checks what a run asks for, without asking the runtime. @throws {ContainerRefusedError} that names the key. */
  check({ image, memoryMib, cpus }: Pick<ContainerSpec, "image" | "memoryMib" | "cpus">): void {
    const { images, maxMemoryMib, maxCpus } = this.#options;
    if (!images.some((each) => fits(image, each))) {
      throw new ContainerRefusedError("image", image, `one that the operator allows: ${images.join(", ")}`); // B1
    }
    if (memoryMib > maxMemoryMib) {
      throw new ContainerRefusedError(
        "memoryMib",
        memoryMib,
        `at most ${maxMemoryMib}, as the operator allows`,
      );
    }
    if (cpus > maxCpus) {
      throw new ContainerRefusedError("cpus", cpus, `at most ${maxCpus}, as the operator allows`);
    }
  }

  /**
   * Starts a container.
   * @param aroundWait wraps the wait for a place.
   * @throws {ContainerRefusedError} as {@link check}.
   * @throws {ContainerRuntimeError} when the runtime fails or does not have the image.
   * @throws the signal's reason when it aborts.
   */
  async open(
    spec: ContainerSpec,
    signal: AbortSignal,
    aroundWait: <T>(wait: () => Promise<T>) => Promise<T> = (wait) => wait(),
  ): Promise<HeldContainer> {
    this.check(spec);
    await aroundWait(() => this.#places.acquire(signal)); // B3
    let container: Container | undefined;
    try {
      const imageId = await this.#imageId(spec.image, signal);
      const labels = {
        [Label.owner]: this.#options.owner,
        [Label.process]: this.#process,
        [Label.until]: `${Date.now() + spec.lifeMs}`,
      };
      const made = await this.#api.call({
        method: "POST",
        path: "/containers/create",
        body: createBody(spec, imageId, labels),
        allowed: [CREATED],
        // Without the signal: whether it was made would not be known, and nobody would remove it.
      });
      const id = textAt(made.body, "Id");
      container = new Container(this.#api, id, spec.user);
      signal.throwIfAborted();
      const path = `/containers/${id}/start`;
      await this.#api.call({ method: "POST", path, allowed: [NO_CONTENT, NOT_MODIFIED], signal });
      await this.#setUp(container, spec, signal);
      return this.#held(container, `${spec.image} ${imageId}`);
    } catch (error) {
      // Where even this fails, the next start of the service removes it.
      await container?.remove().catch(() => undefined);
      this.#places.release();
      throw error;
    }
  }

  /** B2. @returns how many containers were removed. @throws {ContainerRuntimeError} */
  async sweep(): Promise<number> {
    const filters = encodeURIComponent(JSON.stringify({ label: [Label.owner] }));
    const { body } = await this.#api.call({
      method: "GET",
      path: `/containers/json?all=true&filters=${filters}`,
      allowed: [OK],
    });
    const leftovers = (Array.isArray(body) ? (body as unknown[]) : []).filter((each) =>
      this.#isLeftover(each),
    );
    for (const each of leftovers) await new Container(this.#api, textAt(each, "Id"), "").remove();
    return leftovers.length;
  }

  #isLeftover(listed: unknown): boolean {
    const labels: unknown =
      typeof listed === "object" && listed !== null ? Reflect.get(listed, "Labels") : undefined;
    if (typeof labels !== "object" || labels === null) return false;
    const {
      [Label.owner]: owner,
      [Label.process]: process,
      [Label.until]: until,
    } = labels as Record<string, string>;
    const isOver = until !== undefined && Number(until) < Date.now();
    return isOver || (owner === this.#options.owner && process !== this.#process);
  }

  #held(container: Container, image: string): HeldContainer {
    let released: Promise<void> | undefined;
    return {
      container,
      image,
      release: () => {
        released ??= container.remove().finally(() => this.#places.release());
        return released;
      },
    };
  }

  /** B1 */
  async #imageId(image: string, signal: AbortSignal): Promise<string> {
    const path = `/images/${encodeURIComponent(image)}/json`;
    const { status, body } = await this.#api.call({ method: "GET", path, allowed: [OK, NOT_FOUND], signal });
    if (status === OK) return textAt(body, "Id");
    throw new ContainerRuntimeError(
      this.#options.socketPath,
      `it has no image ${image}; the operator has to pull it, as Hone pulls none`,
    );
  }

  async #setUp(
    container: Container,
    { workFolder, copyFrom, image }: ContainerSpec,
    signal: AbortSignal,
  ): Promise<void> {
    const limits = { timeMs: SETUP_MS, maxOutputBytes: 1_000, signal };
    const run = (script: string) => ["/bin/sh", "-c", script, "hone", workFolder, copyFrom ?? "", "/tmp"];
    const opened = await container.runAsRoot({ command: run(OPEN_FOLDERS), ...limits });
    const copied =
      copyFrom === undefined ? opened : await container.run({ command: run(COPY_FILES), ...limits });
    for (const end of [opened, copied]) {
      if (end.kind === "ended" && end.exitCode === 0) continue;
      const told = end.kind === "ended" ? end.output.bytes.toString().trim() : end.kind;
      throw new ContainerRuntimeError(
        this.#options.socketPath,
        `a container of ${image} cannot be set up${copyFrom === undefined ? "" : ` with the files of ${copyFrom}`}: ${told}`,
      );
    }
  }
}

function fits(image: string, allowed: string): boolean {
  return allowed.endsWith("*") ? image.startsWith(allowed.slice(0, -1)) : image === allowed;
}
