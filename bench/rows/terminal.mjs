// One character typed at a terminal, until it is back. The terminal itself echoes nothing: the character goes to a program
// and comes from it.

import assert from 'node:assert/strict';
import { compare, timed } from '../measure.mjs';

const PLAN = { rounds: 20, warmUps: 20, turnMs: 100 };
const READY = 'ready';
const COMMAND = ['sh', '-c', `stty raw -echo && printf ${READY} && exec cat`];

export async function terminal({ contestants, planned }) {
  const typists = [];
  try {
    for (const contestant of contestants.filter(({ terminal }) => terminal)) {
      const screen = await contestant.terminal(COMMAND);
      typists.push(new Typist(contestant.id, screen));
      await typists.at(-1).sees(READY);
    }
    const sample = (typist) => timed(() => typist.type('x'));
    const values = await compare(typists, sample, planned(PLAN));
    return [{ id: 'terminal', title: 'a typed character comes back', unit: 'ms', values }];
  } finally {
    await Promise.all(typists.map((typist) => typist.leave()));
  }
}

class Typist {
  id;
  #screen;
  #seen = '';
  #wake = () => {};
  #reading;
  #ended;

  constructor(id, screen) {
    this.id = id;
    this.#screen = screen;
    this.#reading = this.#read();
    this.#ended = this.#reading.then(() => assert.fail('the terminal ended'));
    // Only who still waits for something minds.
    this.#ended.catch(() => {});
  }

  async #read() {
    for await (const bytes of this.#screen.output) {
      this.#seen += Buffer.from(bytes).toString();
      this.#wake();
    }
  }

  async type(character) {
    this.#seen = '';
    const back = this.sees(character);
    await this.#screen.write(character);
    await back;
  }

  async sees(text) {
    while (this.#seen.length < text.length) {
      const more = new Promise((resolve) => {
        this.#wake = resolve;
      });
      await Promise.race([more, this.#ended]);
    }
    assert.equal(this.#seen, text);
  }

  async leave() {
    await this.#screen.close();
    await this.#reading;
  }
}
