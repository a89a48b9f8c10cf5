/** What the checks of keys against each other find. */

/** The key that contradicts another, and what is allowed there. */
export interface Contradiction {
  readonly path: PropertyKey[];
  readonly allowed: string;
}
