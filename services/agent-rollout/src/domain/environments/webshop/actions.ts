/** The two actions of a shopper as text: `search[keywords]` and `click[value]`. */

export type ShopAction =
  | { readonly kind: "search"; readonly keywords: string }
  | { readonly kind: "click"; readonly value: string };

/** Characters of an argument that are read: a search takes longer the more words it has, and actions stand in records. */
const MAX_ARGUMENT = 500;
/** ROLL's instruction asks for thoughts before the action, behind this word. */
const ACTION_LABEL = "Action:";

export function searchAction(keywords: string): string {
  return `search[${keywords}]`;
}

export function clickAction(value: string): string {
  return `click[${value}]`;
}

/** The action that a text begins with, or that follows its last "Action:"; undefined = there is none. */
export function readShopAction(text: string): ShopAction | undefined {
  const trimmed = text.trim();
  return readFromStart(trimmed) ?? readFromStart(afterLabel(trimmed));
}

function afterLabel(text: string): string {
  const label = text.lastIndexOf(ACTION_LABEL);
  return label < 0 ? "" : text.slice(label + ACTION_LABEL.length).trimStart();
}

/** By WebShop's rule, an argument ends at the last bracket, so that it may hold brackets itself. */
function readFromStart(text: string): ShopAction | undefined {
  const kind = text.startsWith("search[") ? "search" : text.startsWith("click[") ? "click" : undefined;
  if (kind === undefined) return undefined;
  // Without a closing bracket the argument is empty.
  const argument = text.slice(kind.length + 1, Math.max(0, text.lastIndexOf("]")));
  const read = argument.trim().slice(0, MAX_ARGUMENT);
  if (read === "") return undefined;
  return kind === "search" ? { kind, keywords: read } : { kind, value: read.toLowerCase() };
}
