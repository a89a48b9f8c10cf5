/**
 * A strip of coloured tokens, with a card that shows details of the token under the pointer or the cursor.
 *
 * A strip is one stop of the tab key; the arrow keys move from token to token.
 */

import type { TokenView } from "../../api-types.ts";
import { type Child, h, replace, setVars } from "../../dom.ts";
import { number, percent, signed, visible } from "../../format.ts";

/** What the colours of tokens show. */
export const ColorBy = { advantage: "advantage", logprob: "logprob", mask: "mask" } as const;
export type ColorBy = (typeof ColorBy)[keyof typeof ColorBy];

/** The card beside the selected token. */
export interface TokenCard {
  readonly element: HTMLElement;
  hide(): void;
  /** @param position of the token among those of its strip. */
  show(cell: HTMLElement, token: TokenView, position: number): void;
}

export interface TokenStripOptions {
  readonly label: string;
  readonly card: TokenCard;
}

/** Advantages are normalised in their group; from two on the colour is strongest. */
const STRONG_ADVANTAGE = 2;
/** From a negative log-probability of 3, a probability of one in twenty, the colour is strongest. */
const STRONG_SURPRISE = 3;

/** @param card what tokenCard() made. */
export function tokenStrip(tokens: readonly TokenView[], { label, card }: TokenStripOptions): HTMLElement {
  const cells = tokens.map(cellOf);
  const strip = h(
    "div",
    { class: "tokens", tabindex: 0, role: "listbox", "aria-label": label, "aria-orientation": "horizontal" },
    cells.map((cell, i) => [cell, tokens[i]?.text?.includes("\n") && h("br")]),
  );
  let selected: number | undefined;

  const select = (index: number | undefined) => {
    cells[selected ?? -1]?.removeAttribute("aria-selected");
    selected = index;
    const cell = cells[index ?? -1];
    const token = tokens[index ?? -1];
    if (index === undefined || cell === undefined || token === undefined) {
      strip.removeAttribute("aria-activedescendant");
      card.hide();
      return;
    }
    cell.setAttribute("aria-selected", "true");
    cell.id ||= `token-${crypto.randomUUID()}`;
    strip.setAttribute("aria-activedescendant", cell.id);
    card.show(cell, token, index);
  };

  strip.addEventListener("pointerover", (event) => {
    const cell = event.target instanceof Element ? event.target.closest<HTMLElement>(".token") : null;
    if (cell !== null) select(Number(cell.dataset.position));
  });
  strip.addEventListener("pointerleave", () => select(undefined));
  strip.addEventListener(
    "focus",
    () => selected === undefined && strip.matches(":focus-visible") && select(firstSampled(tokens)),
  );
  strip.addEventListener("blur", () => select(undefined));
  strip.addEventListener("keydown", (event) => {
    const at = selected ?? 0;
    const last = cells.length - 1;
    const targets: Readonly<Record<string, number>> = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      ArrowUp: lineAway(cells, at, -1),
      ArrowDown: lineAway(cells, at, 1),
      Home: 0,
      End: last,
    };
    const target = targets[event.key];
    if (event.key === "Escape") select(undefined);
    else if (target !== undefined) select(Math.max(0, Math.min(last, target)));
    else return;
    event.preventDefault();
    cells[selected ?? -1]?.scrollIntoView({ block: "nearest" });
  });
  return strip;
}

function firstSampled(tokens: readonly TokenView[]): number {
  return Math.max(
    0,
    tokens.findIndex(({ isSampled }) => isSampled),
  );
}

/** The nearest token on the line above or below. */
function lineAway(cells: readonly HTMLElement[], from: number, direction: number): number {
  const here = cells[from]?.getBoundingClientRect();
  if (here === undefined) return from;
  let best = from;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const [i, cell] of cells.entries()) {
    const there = cell.getBoundingClientRect();
    const down = (there.top - here.top) * direction;
    if (down < here.height / 2) continue;
    const distance = down * 10 + Math.abs(there.left - here.left);
    if (distance < bestDistance) [best, bestDistance] = [i, distance];
  }
  return best;
}

/** Colours the tokens of a strip by other advantages. @param advantageOf undefined = it stays as it is. */
export function recolor(
  strip: HTMLElement,
  tokens: readonly TokenView[],
  advantageOf: (token: TokenView) => number | undefined,
): void {
  for (const cell of strip.querySelectorAll<HTMLElement>(".token")) {
    const advantage = advantageOf(tokens[Number(cell.dataset.position)]!);
    if (advantage === undefined) continue;
    const { sign, push } = colorOf(advantage);
    cell.dataset.sign = sign;
    cell.style.setProperty("--push", push);
  }
}

function cellOf({ id, text, isSampled, logprob, advantage = 0 }: TokenView, position: number): HTMLElement {
  const { sign, push } = colorOf(advantage);
  return h(
    "span",
    {
      class: text === undefined ? "token token-id" : "token",
      role: "option",
      data: { mask: isSampled ? 1 : 0, sign, position },
      vars: {
        push,
        "surprise-share": logprob === undefined ? 0 : Math.min(1, -logprob / STRONG_SURPRISE).toFixed(3),
      },
    },
    text === undefined ? String(id) : text === "" ? "∅" : visible(text),
  );
}

function colorOf(advantage: number): { readonly sign: "up" | "down"; readonly push: string } {
  const push = Math.max(-1, Math.min(1, advantage / STRONG_ADVANTAGE));
  return { sign: push < 0 ? "down" : "up", push: Math.abs(push).toFixed(3) };
}

/** The legend of the colours. */
export function colorLegend(by: string | undefined): Child {
  const swatch = (kind: string, text: string) =>
    h("span", {}, h("i", { class: "legend-swatch", data: { kind } }), text);
  if (by === ColorBy.advantage)
    return [swatch("up", "made likelier"), swatch("down", "made less likely"), swatch("context", "context")];
  if (by === ColorBy.logprob)
    return [swatch("expected", "expected"), swatch("surprising", "surprising"), swatch("context", "context")];
  return [swatch("sampled", "sampled, trained"), swatch("context", "context")];
}

/**
 * Makes the card that is shown beside the selected token; the page has one.
 * @param trainedRows gives what training did with a token, its advantage included; none = that is not known.
 */
export function tokenCard(
  trainedRows: (token: TokenView) => readonly (readonly [string, Child])[],
): TokenCard {
  const element = h("div", { class: "token-card", role: "tooltip", hidden: true });
  return {
    element,
    hide() {
      element.hidden = true;
    },
    show(cell, token, position) {
      const { id, text, isSampled, logprob, version, advantage } = token;
      const trained = trainedRows(token);
      const rows: readonly (readonly [string, Child] | false)[] = [
        ["token id", id],
        ["position", position],
        ["mask", isSampled ? "1, sampled" : "0, context"],
        isSampled && ["logprob", logprob === undefined ? "–" : number(logprob, 4)],
        isSampled && logprob !== undefined && ["probability", percent(Math.exp(logprob), 2)],
        isSampled &&
          trained.length === 0 && ["advantage", advantage === undefined ? "not known" : signed(advantage, 3)],
        isSampled && version !== undefined && ["policy version", version],
        ...trained,
      ];
      replace(
        element,
        h("div", { class: "token-card-text mono" }, text === undefined ? `#${id}` : JSON.stringify(text)),
        h(
          "dl",
          {},
          rows
            .filter((row) => row !== false)
            .map(([name, value]) => [h("dt", {}, name), h("dd", { class: "num" }, value)]),
        ),
      );
      element.hidden = false;
      place(element, cell.getBoundingClientRect());
    },
  };
}

/** Places the card below the token, or above it where there is no room, and always inside the window. */
function place(element: HTMLElement, anchor: DOMRect): void {
  const { offsetWidth: width, offsetHeight: height } = element;
  const left = Math.max(
    8,
    Math.min(window.innerWidth - width - 8, anchor.left + anchor.width / 2 - width / 2),
  );
  const isRoomBelow = anchor.bottom + 8 + height < window.innerHeight;
  const top = isRoomBelow ? anchor.bottom + 8 : anchor.top - 8 - height;
  setVars(element, { left: `${left}px`, top: `${top}px` });
}
