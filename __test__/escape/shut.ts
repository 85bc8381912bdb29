/** The one assertion of this suite: what works outside does not work inside. */
import type { Answer, BoxUser, Den } from './den';
import { differs } from './worlds';

export interface Attempt {
  words: string[];
  /** Where the words differ outside, because a sandbox's way there is another. */
  outside?: string[];
  /** Who succeeds outside: `root` alone, or the user who runs the program, whoever that is. */
  by?: 'root' | 'anyone';
}

/** Without it, the kernel says so to everybody. */
const ABSENT = ['ENOSYS', 'EAFNOSUPPORT'];

/** Tries outside, where it works if this kernel has it at all, then as every user of the sandbox, where it must not. */
export async function expectShut(den: Den, { words, outside = words, by = 'anyone' }: Attempt): Promise<void> {
  if (by === 'anyone' || den.isRoot) {
    const answer = await den.outside(outside);
    const isAbsent = 'refused' in answer && ABSENT.includes(answer.refused);
    if (!isAbsent) expect({ outside, answer }).toEqual({ outside, answer: { got: expect.anything() } });
  }
  for (const [boxUser, answer] of await everyUser(den, words)) {
    if (!differs(den.world, words)) expect({ words, boxUser, answer }).not.toHaveProperty('answer.got');
  }
  expect(den.witness.isUntouched).toBe(true);
}

/** What each user of the sandbox gets. */
export async function everyUser(den: Den, words: string[]): Promise<[BoxUser, Answer][]> {
  const answers: [BoxUser, Answer][] = [];
  for (const boxUser of den.users) answers.push([boxUser, await den.inside(words, boxUser)]);
  return answers;
}
