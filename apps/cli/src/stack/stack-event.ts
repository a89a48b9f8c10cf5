/** The events of a stack that the command line prints. */
export type StackEvent =
  | { readonly kind: "progress"; readonly text: string }
  /** A program is being fetched, which is slow and happens only once. */
  | { readonly kind: "fetching"; readonly text: string }
  | { readonly kind: "restarted"; readonly name: string; readonly reason: string; readonly restarts: number };
