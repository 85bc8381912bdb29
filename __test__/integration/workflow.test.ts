import { seenBy } from '../adapters/program';
import { ground } from '../ground';
import { describeWithEngine, unique } from '../support';

interface Seen {
  verdicts: string[];
  kinds: string[];
  sandboxes: { key: string; image: string }[];
  proof: number;
  ended: { closed: number };
  left: unknown[];
}

describeWithEngine('a workflow of three agents: analyze, fix, test, again', () => {
  const workflow = unique();
  let seen: Seen;

  beforeAll(async () => {
    seen = await seenBy<Seen>('workflow', workflow);
  });

  test('goes on until the tests in the sandbox pass', () => {
    expect(seen.verdicts).toEqual(['FAIL', 'FAIL', 'PASS: Ran 3 tests']);
    expect(seen.kinds).toEqual(['SyntaxError', 'NameError', 'AssertionError']);
    expect(seen.proof).toBe(0);
  });

  test('shares one sandbox, by the workflow’s scope', () => {
    expect(seen.sandboxes).toEqual([{ key: `workflow:${workflow}:default`, image: 'python:3.11-slim' }]);
  });

  test('leaves nothing when the scope is ended', async () => {
    expect(seen).toMatchObject({ ended: { closed: 1 }, left: [] });
    expect(await ground.labelled('workflow', workflow)).toEqual([]);
  });
});
