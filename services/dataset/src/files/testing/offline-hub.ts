/** A client of the hub for tests. By default it is offline and its cache is empty. */

import { tmpdir } from "node:os";
import path from "node:path";
import { DatasetHub, type HubSettings } from "@hone/hub";
import { silentLogger } from "@hone/telemetry";
import { HubDatasets } from "../sources/hub-datasets.ts";

export interface OfflineHubOptions {
  readonly root: string;
  /** Settings that differ from the default. */
  readonly settings?: Partial<HubSettings>;
  readonly patienceMs?: number;
}

export function offlineHub({ root, settings = {}, patienceMs = 5_000 }: OfflineHubOptions): HubDatasets {
  const hub = new DatasetHub({
    endpoint: "http://127.0.0.1:1",
    cacheDir: path.join(tmpdir(), "hone-no-hub"),
    token: undefined,
    isOffline: true,
    ...settings,
  });
  return new HubDatasets({
    root,
    hub,
    signal: new AbortController().signal,
    logger: silentLogger(),
    patienceMs,
  });
}
