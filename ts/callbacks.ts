/** Functions of the caller's that this package calls. */

/** Receives output as text. A returned promise is awaited. */
export type OutputCallback = ((text: string) => void) | ((text: string) => Promise<void>);

/** Receives the steps of a long call. A returned promise is awaited. */
export type ProgressCallback<Progress> = ((progress: Progress) => void) | ((progress: Progress) => Promise<void>);
