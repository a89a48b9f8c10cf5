/** The samples of a rollout as a tree that shows where its histories branch. A sample's button shows its history alone. */

import type { SampleNode } from "../../api-types.ts";
import { type Child, h } from "../../dom.ts";
import { count } from "../../format.ts";

/** More samples are not drawn. */
const MAX_DRAWN = 200;

/**
 * @param onChoose called with the turns to be shown; undefined = all.
 * @returns null where no history branches: every sample then begins anew.
 */
export function sampleTree(
  nodes: readonly SampleNode[],
  onChoose: (turns: ReadonlySet<number> | undefined) => void,
): Child {
  const branches = nodes.filter(({ parent }) => parent !== null).length;
  if (branches === 0) return null;
  const buttons: HTMLButtonElement[] = [];
  const choose = (button: HTMLButtonElement, turns: ReadonlySet<number> | undefined) => {
    for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
    onChoose(turns);
  };
  const buttonOf = (text: Child, turns: ReadonlySet<number> | undefined) => {
    const button = h(
      "button",
      { class: "button tree-button", type: "button", "aria-pressed": String(turns === undefined) },
      text,
    );
    button.addEventListener("click", () => choose(button, turns));
    buttons.push(button);
    return button;
  };
  const drawn = nodes.slice(0, MAX_DRAWN);
  const below = (parent: number | null): Child => {
    const children = drawn.filter((node) => node.parent === parent);
    if (children.length === 0) return null;
    return h(
      "ul",
      { class: "tree-level" },
      children.map((node) =>
        h(
          "li",
          {},
          buttonOf(labelOf(node), new Set(node.history)),
          h("span", { class: "small faint" }, noteOf(node)),
          below(node.sample),
        ),
      ),
    );
  };
  return h(
    "details",
    { class: "card sample-tree", open: true },
    h(
      "summary",
      {},
      `${count(nodes.length)} samples`,
      h("span", { class: "faint" }, `, ${count(branches)} of them branched from an earlier one`),
    ),
    h("div", { class: "sample-tree-body" }, buttonOf("All turns", undefined), below(null)),
    nodes.length > drawn.length &&
      h("p", { class: "small soft" }, `${count(nodes.length - drawn.length)} more are not drawn.`),
  );
}

function labelOf({ sample, turns }: SampleNode): Child {
  return [
    `Sample ${sample}`,
    h("span", { class: "faint" }, turns.length === 1 ? " 1 turn" : ` ${count(turns.length)} turns`),
  ];
}

function noteOf({ tokens, sampledTokens, parent, sharedTokens }: SampleNode): string {
  const size = `${count(tokens)} tokens, ${count(sampledTokens)} sampled`;
  return parent === null
    ? ` ${size}`
    : ` ${size}; leaves sample ${parent} after ${count(sharedTokens)} tokens`;
}
