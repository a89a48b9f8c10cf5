/** Shows below the header which parts of Hone do not answer and how many messages could not be decoded, and tells views of it. */

import { read } from "./api.ts";
import type { StackHealth } from "./api-types.ts";
import { type Child, h, replace } from "./dom.ts";
import { count, duration } from "./format.ts";

const CHECK_INTERVAL_MS = 5_000;
const listeners = new Set<(health: StackHealth) => void>();
let latest: StackHealth | undefined;

/** Checks now and every few seconds while the page is visible. */
export function showHealth(element: HTMLElement): void {
  const check = async () => {
    if (document.hidden) return;
    try {
      const health = await read<StackHealth>("/health");
      latest = health;
      replace(element, notices(health));
      for (const listener of listeners) listener(health);
    } catch {
      replace(element, notice("The tracer does not answer."));
    }
  };
  setInterval(check, CHECK_INTERVAL_MS);
  document.addEventListener("visibilitychange", check);
  void check();
}

/** Calls `listener` with what is known now, and after every check. */
export function onHealth(signal: AbortSignal, listener: (health: StackHealth) => void): void {
  if (latest !== undefined) listener(latest);
  listeners.add(listener);
  signal.addEventListener("abort", () => listeners.delete(listener), { once: true });
}

function notices({ bus, database, services, dead }: StackHealth): Child {
  const parts: (readonly [string, { readonly silentSinceMs: number | null }])[] = [
    ["The bus", bus],
    ["The database", database],
    ...services.map((each) => [each.service, each] as const),
  ];
  const silent = parts.flatMap(([name, { silentSinceMs }]) =>
    silentSinceMs === null ? [] : [{ name, silentSinceMs }],
  );
  return [
    silent.map(({ name, silentSinceMs }) =>
      notice(
        `${name} has not answered for `,
        h("span", { class: "num" }, duration(Date.now() - silentSinceMs)),
      ),
    ),
    dead.count > 0 &&
      notice(
        `${count(dead.count)} messages could not be decoded; the last one was on `,
        h("code", {}, dead.lastSubject),
        `: ${dead.lastReason}`,
      ),
  ];
}

function notice(...content: Child[]): HTMLElement {
  return h("div", { class: "notice" }, h("span", {}, content));
}
