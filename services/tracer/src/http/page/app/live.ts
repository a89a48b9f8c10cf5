/** Listens for changes: the page has one stream of Server-Sent Events, which the browser reconnects when it breaks. */

type Listener = (runs: ReadonlySet<string> | undefined) => void;

const listeners = new Set<Listener>();
const indicator = document.getElementById("live");
let source: EventSource | undefined;

const LABELS = { connecting: "connecting", open: "live", lost: "reconnecting" };

function show(state: keyof typeof LABELS): void {
  if (indicator === null) return;
  indicator.dataset.state = state;
  indicator.textContent = LABELS[state];
}

function connect(): void {
  show("connecting");
  const opened = new EventSource("/api/live");
  source = opened;
  opened.addEventListener("ready", () => {
    show("open");
    // Refreshes every view, as changes since it was first read, or since the stream was lost, were not reported.
    notify(undefined);
  });
  opened.addEventListener("error", () => {
    show("lost");
    // When the server answers with an error, as while it starts, the browser closes the stream and does not reconnect.
    if (opened.readyState === EventSource.CLOSED) setTimeout(connect, 2_000);
  });
  opened.addEventListener("changed", (event: MessageEvent<string>) =>
    notify(new Set(JSON.parse(event.data).runs)),
  );
}

/** @param runs ids of the runs that changed; undefined = any may have changed. */
function notify(runs: ReadonlySet<string> | undefined): void {
  for (const listener of listeners) listener(runs);
}

/**
 * Calls `refresh` when a run has changed, one call at a time; after a change during a call there is one more call.
 * @param runId undefined = any run.
 */
export function onChange(runId: string | undefined, signal: AbortSignal, refresh: () => Promise<void>): void {
  if (source === undefined) connect();
  let isBusy = false;
  let isDue = false;
  const listener = async (runs: ReadonlySet<string> | undefined) => {
    if (runs !== undefined && runId !== undefined && !runs.has(runId)) return;
    isDue = true;
    if (isBusy) return;
    isBusy = true;
    while (isDue && !signal.aborted) {
      isDue = false;
      try {
        await refresh();
      } catch (error) {
        // The view keeps what it shows; it is refreshed at the next change or when the stream returns.
        if (!signal.aborted) console.warn("the view could not be refreshed", error);
      }
    }
    isBusy = false;
  };
  listeners.add(listener);
  signal.addEventListener("abort", () => listeners.delete(listener), { once: true });
}

const tickers = new Set<() => void>();
setInterval(() => {
  for (const tick of tickers) tick();
}, 1_000);

/** Calls `tick` now and every second, for times that are shown relative to now. */
export function everySecond(signal: AbortSignal, tick: () => void): void {
  tick();
  tickers.add(tick);
  signal.addEventListener("abort", () => tickers.delete(tick), { once: true });
}
