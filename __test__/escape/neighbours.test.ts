import { Den } from './den';
import { everyUser } from './shut';
import { describeWorlds } from './worlds';

describeWorlds('sandboxes of one program', (world) => {
  const den = new Den(world);
  let neighbour = '';
  // Nothing of the suite's own is called so: what is found can only be the neighbour's.
  const token = `neighbour-${den.witness.token}`;
  const reversed = [...token].reverse().join('');
  const file = '/workspace/secret';
  beforeAll(async () => {
    await den.start();
    neighbour = await den.open();
    await den.ask('exec', neighbour, ['sh', '-c', `echo ${token} > ${file}`], {});
  });
  afterAll(() => den.stop());

  test('do not see each other’s files', async () => {
    expect(await den.inside(['read', file], 'root', neighbour)).toEqual({ got: `${token}\n` });
    expect(await den.inside(['proc-links', file, reversed], 'root', neighbour)).toHaveProperty('got');
    for (const words of [
      ['read', file],
      ['climb', file],
      ['proc-links', file, reversed],
    ]) {
      for (const [boxUser, answer] of await everyUser(den, words)) {
        expect({ words, boxUser, answer }).not.toHaveProperty('answer.got');
      }
    }
  });

  test('do not see each other’s processes', async () => {
    const env = { NEIGHBOUR: token };
    await den.ask('hold', neighbour, ['sh', '-c', 'echo held; exec cat'], { env });
    expect(await den.inside(['seen', reversed], 'root', neighbour)).toHaveProperty('got');
    for (const [, answer] of await everyUser(den, ['seen', reversed])) expect(answer).not.toHaveProperty('got');
  });
});
