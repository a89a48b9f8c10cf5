/** The form of the word lists from which products are made. */

/** A kind of product. */
export interface Kind {
  /** What people search for. */
  readonly query: string;
  /** Its name in titles; the words of `nouns` stand in it. */
  readonly name: string;
  readonly nouns: readonly string[];
  /** Dollars. */
  readonly price: readonly [lowest: number, highest: number];
}

export interface Category {
  /** From the widest to the last but one; the kind's query is the narrowest. */
  readonly path: readonly [string, string];
  readonly kinds: readonly Kind[];
  /** Attributes and groups of options of the family that do not suit it. @default none */
  readonly except?: readonly string[];
}

/** Categories whose products have the same attributes, options and uses. */
export interface Family {
  readonly categories: readonly Category[];
  /** Attributes, each with the rest of the sentence that it begins; none of these sentences holds another attribute. */
  readonly attributes: Readonly<Record<string, string>>;
  /**
   * Groups of options, each with all the values that there are. No two of them match by the reward's rule, as "pack of 12" and
   * "pack of 24" would: otherwise it would not matter which of them is chosen.
   */
  readonly options: readonly { readonly name: string; readonly values: readonly string[] }[];
  /** What its products are good for. */
  readonly uses: readonly string[];
}

/** Writes a kind down: its query, its name, the nouns in it, and its prices. */
export function kind(query: string, name: string, nouns: string, lowest: number, highest: number): Kind {
  return { query, name, nouns: nouns.split(" "), price: [lowest, highest] };
}

/** Colours of clothes and things; none is part of the name of another. */
export const COLORS = [
  "black",
  "white",
  "navy",
  "crimson",
  "olive",
  "teal",
  "mustard",
  "lavender",
  "charcoal",
  "ivory",
  "coral",
  "burgundy",
  "turquoise",
  "beige",
] as const;
