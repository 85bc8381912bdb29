// Something this machine cannot give us, as opposed to a step that broke: it says why, and what to do next.
// Callers may go on without it; a step that broke is a plain Error and always ends the command.

export class Unavailable extends Error {
  /**
   * @param {string} why one sentence: what was needed and what stands in the way
   * @param {string} next what a person can do about it
   */
  constructor(why, next) {
    super(`${why}\n${next}`);
    this.name = 'Unavailable';
    this.why = why;
    this.next = next;
  }
}
