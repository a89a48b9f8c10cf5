/** Asks before something is done that cannot be taken back. The browser's own dialog keeps the focus inside and closes by Escape. */

import { h } from "./dom.ts";

export interface Question {
  readonly title: string;
  readonly text: string;
  /** What the button that does it says. */
  readonly action: string;
  readonly isDangerous?: boolean;
}

/** @returns whether the person agreed. */
export function confirmed({ title, text, action, isDangerous = false }: Question): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const dialog = h("dialog", { class: "dialog", "aria-labelledby": "dialog-title" });
  const close = (agrees: boolean) => {
    resolve(agrees);
    dialog.close();
  };
  dialog.append(
    h("h2", { id: "dialog-title" }, title),
    h("p", { class: "soft" }, text),
    h(
      "div",
      { class: "dialog-buttons" },
      h("button", { class: "button", type: "button", onclick: () => close(false) }, "Back"),
      h(
        "button",
        {
          class: "button button-main",
          type: "button",
          data: { tone: isDangerous ? "bad" : "plain" },
          onclick: () => close(true),
        },
        action,
      ),
    ),
  );
  dialog.addEventListener("close", () => {
    resolve(false);
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
  return promise;
}
