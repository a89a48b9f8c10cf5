/** What a view gets: where to draw, the parts of its address, and how to leave. */

/** Pairs of text and address; the last one has no address. */
export type Trail = ReadonlyArray<readonly [text: string, href?: string]>;

export interface ViewContext {
  readonly root: HTMLElement;
  /** The parts of the address, by name. */
  readonly params: Readonly<Record<string, string>>;
  /** Aborts when another view is shown. */
  readonly signal: AbortSignal;
  /** Sets the window's title and the breadcrumb. */
  readonly setPlace: (title: string, trail: Trail) => void;
  /** Goes to another address of this page. */
  readonly navigate: (href: string) => void;
}
