/** What a shop sells. */

/** A group of options, of which a buyer chooses one each. */
export interface OptionGroup {
  readonly name: string;
  /** In lower case, no two alike; no value of a product stands in two of its groups. */
  readonly values: readonly string[];
}

export interface Review {
  readonly title: string;
  /** Stars, 1 to 5. */
  readonly score: number;
  readonly body: string;
}

export interface Product {
  /** As shown; no two products of a shop have the same, whatever the case of the letters. */
  readonly id: string;
  readonly title: string;
  /**
   * The nouns of the title in lower case, by which the reward compares kinds of products. The brand is not among them, as
   * no one asks for it.
   */
  readonly nouns: readonly string[];
  /** From the widest category to the narrowest. */
  readonly category: readonly string[];
  /** What people search for who want such a product. */
  readonly query: string;
  /** Lowest and highest price in dollars, equal if there is only one. The highest is the one that counts. */
  readonly price: readonly [lowest: number, highest: number];
  /** In lower case. */
  readonly attributes: readonly string[];
  readonly options: readonly OptionGroup[];
  readonly description: string;
  readonly features: readonly string[];
  readonly reviews: readonly Review[];
}
