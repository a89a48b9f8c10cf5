/** Hearing of changes: one stream of Server-Sent Events for the page, which browsers mend by themselves. */

const listeners = new Set();
const indicator = document.getElementById("live");
let source;

const LABELS = { connecting: "connecting", open: "live", lost: "reconnecting" };

function show(state) {
  indicator.dataset.state = state;
  indicator.textContent = LABELS[state];
}

function connect() {
  show("connecting");
  source = new EventSource("/api/live");
  source.addEventListener("ready", () => {
    show("open");
    // What happened between the view's first reading, or the loss of the stream, and now was not heard.
    tell(undefined);
  });
  source.addEventListener("error", () => {
    show("lost");
    // Closed for good, as by a server that was not ready: browsers do not try again by themselves then.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2_000);
  });
  source.addEventListener("changed", (event) => tell(new Set(JSON.parse(event.data).runs)));
}

function tell(runs) {
  for (const listener of listeners) listener(runs);
}

/**
 * Calls `refresh` when a run has changed, one call at a time: what changes during one is read by one more.
 * @param runId undefined = any run.
 */
export function onChange(runId, signal, refresh) {
  if (source === undefined) connect();
  let isBusy = false;
  let isDue = false;
  const listener = async (runs) => {
    if (runs !== undefined && runId !== undefined && !runs.has(runId)) return;
    isDue = true;
    if (isBusy) return;
    isBusy = true;
    while (isDue && !signal.aborted) {
      isDue = false;
      try {
        await refresh();
      } catch (error) {
        // The view shows what it had; the next change, or the return of the stream, brings the rest.
        if (!signal.aborted) console.warn("could not refresh", error);
      }
    }
    isBusy = false;
  };
  listeners.add(listener);
  signal.addEventListener("abort", () => listeners.delete(listener), { once: true });
}

const tickers = new Set();
setInterval(() => {
  for (const tick of tickers) tick();
}, 1_000);

/** Calls `tick` now and every second, for times that are shown relative to now. */
export function everySecond(signal, tick) {
  tick();
  tickers.add(tick);
  signal.addEventListener("abort", () => tickers.delete(tick), { once: true });
}
