/** A line below the header that tells which parts of Hone do not answer, and what could not be decoded. */

import { read } from "./api.js";
import { h, replace } from "./dom.js";
import { count, duration } from "./format.js";

const LOOK_EVERY_MS = 5_000;

/** Looks now and every few seconds while the page is seen. */
export function showHealth(element) {
  const look = async () => {
    if (document.hidden) return;
    try {
      replace(element, notices(await read("/health")));
    } catch {
      replace(element, notice("The tracer does not answer."));
    }
  };
  setInterval(look, LOOK_EVERY_MS);
  document.addEventListener("visibilitychange", look);
  void look();
}

function notices({ bus, database, services, dead }) {
  const parts = [
    ["The bus", bus],
    ["The database", database],
    ...services.map((each) => [each.service, each]),
  ];
  const silent = parts.filter(([, { silentSinceMs }]) => silentSinceMs !== null);
  return [
    silent.map(([name, { silentSinceMs }]) =>
      notice(
        `${name} does not answer since `,
        h("span", { class: "num" }, duration(Date.now() - silentSinceMs)),
      ),
    ),
    dead.count > 0 &&
      notice(
        `${count(dead.count)} messages could not be decoded; the last one on `,
        h("code", {}, dead.lastSubject),
        `: ${dead.lastReason}`,
      ),
  ];
}

function notice(...content) {
  return h("div", { class: "notice" }, h("span", {}, content));
}
