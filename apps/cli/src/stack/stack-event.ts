/** What a stack reports to the person who started it. */
export type StackEvent =
  | { readonly kind: "progress"; readonly text: string }
  /** A program is fetched from the network: slow, and only once. */
  | { readonly kind: "fetching"; readonly text: string }
  | { readonly kind: "restarted"; readonly name: string; readonly reason: string; readonly restarts: number };
