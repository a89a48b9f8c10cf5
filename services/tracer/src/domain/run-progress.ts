/** How far a run is within its current phase. */

export type RunProgress =
  | { readonly kind: "rollouts"; readonly step: number; readonly done: number; readonly total: number }
  | {
      readonly kind: "warm_start";
      readonly rolloutsDone: number;
      readonly rolloutsTotal: number;
      readonly updatesDone: number;
      readonly updatesTotal: number;
      /** Null before the first update. */
      readonly loss: number | null;
    };
