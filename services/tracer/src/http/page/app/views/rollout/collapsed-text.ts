/**
 * Texts of models and tools, which may be of any length and hold any character: long ones are cut until somebody wants all, and
 * characters that would act on the text around them are shown by their number.
 */

import { type Child, h } from "../../dom.ts";
import { count, plainText } from "../../format.ts";

/** A browser lays out this much in a few milliseconds. */
const SHOWN_CHARACTERS = 6_000;

export function collapsedText(text: string, className: string): Child {
  const plain = plainText(text);
  const element = h("div", { class: className });
  if (plain.length <= SHOWN_CHARACTERS) {
    element.textContent = plain;
    return element;
  }
  element.textContent = `${plain.slice(0, SHOWN_CHARACTERS)}…`;
  const more = h(
    "button",
    {
      class: "button small",
      type: "button",
      onclick: () => {
        element.textContent = plain;
        more.remove();
      },
    },
    `Show all ${count(plain.length)} characters`,
  );
  return [element, more];
}
