// What the hosts of a soak have told so far.

export class Tally {
  operations = {};
  /** Errors that were provoked, by their code and reason. */
  excused = {};
  killed = 0;
  closed = 0;
  /** Errors that nobody provoked. */
  errors = [];

  hear({ told, failed }, place) {
    if (told) {
      add(this.operations, told.done);
      add(this.excused, told.excused);
    }
    if (failed) {
      const error = { at: new Date().toISOString(), host: place, ...failed };
      this.errors.push(error);
      console.log(`✗ ${JSON.stringify(error)}`);
    }
  }

  get total() {
    return Object.values(this.operations).reduce((sum, count) => sum + count, 0);
  }
}

function add(sums, counts) {
  for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
}
