/** The figures of ROLL's games: how many of an episode's actions were valid, and how many changed something. */

export class StepTally {
  #steps = 0;
  #valid = 0;
  #effective = 0;

  /** Steps so far. */
  get steps(): number {
    return this.#steps;
  }

  add({ isValid, isEffective }: { readonly isValid: boolean; readonly isEffective: boolean }): void {
    this.#steps++;
    if (isValid) this.#valid++;
    if (isEffective) this.#effective++;
  }

  /** Means over the steps; 0 before the first one. */
  metrics(): { readonly action_is_valid: number; readonly action_is_effective: number } {
    const steps = Math.max(1, this.#steps);
    return { action_is_valid: this.#valid / steps, action_is_effective: this.#effective / steps };
  }
}
