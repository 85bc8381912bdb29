import type { SandboxManagerOptions } from 'cofferdam';
import { describeWithEngine, IMAGES, testManager, testOnDocker, unique } from '../support';

describeWithEngine('the policy of a manager', () => {
  const open = testManager({ defaults: { image: IMAGES.alpine } });

  test('also holds for sandboxes that another manager made', async () => {
    const scope = { workflow: unique() };
    const made = await open.open({ scope, limits: { memoryMb: 300 } });
    for (const [policy, code] of [
      [{ allowedImages: [IMAGES.debian] }, 'IMAGE_NOT_ALLOWED'],
      [{ maxLimits: { memoryMb: 299 } }, 'POLICY_DENIED'],
    ] as const) {
      const strict = testManager({ policy: policy as SandboxManagerOptions['policy'] });
      await expect(strict.open({ scope })).rejects.toMatchObject({ code });
      await expect(strict.get(made.id)).rejects.toMatchObject({ code });
    }
    expect((await made.exec('echo still here')).stdout).toBe('still here\n');
  });

  test('a shortcut that is allowed lets in what others opened by it', async () => {
    const scope = { workflow: unique() };
    const made = await open.open({ scope, image: 'linux' });
    const strict = testManager({ policy: { allowedImages: ['linux'] } });
    expect((await strict.open({ scope, image: 'linux' })).id).toBe(made.id);
    expect((await testManager({ policy: { allowedImages: ['bash'] } }).get(made.id)).id).toBe(made.id);
    await expect(testManager({ policy: { allowedImages: ['nope'] } }).get(made.id)).rejects.toMatchObject({
      code: 'IMAGE_NOT_ALLOWED',
    });
  });

  test('a session is found whatever the default image is', async () => {
    const scope = { workflow: unique() };
    const made = await open.open({ scope });
    const other = testManager({
      defaults: { pull: 'never' },
      policy: { allowedImages: [`${IMAGES.alpine.slice(0, -2)}*`] },
    });
    expect(await other.open({ scope })).toMatchObject({ id: made.id, created: false, image: IMAGES.alpine });
  });

  test.each([
    [{ enabled: false, allow: ['example.com'] }],
    [{ allow: ['example.com'] }],
    [{ enabled: 'yes' }],
    ['on'],
    [null],
  ])('a network of %j, which is not understood, is refused and never ignored', async (network) => {
    const asked = open.open({ network: network as unknown as boolean });
    await expect(asked).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/^network/) });
  });

  testOnDocker('network that is denied is denied in what others made, too', async () => {
    const scope = { workflow: unique() };
    await open.open({ scope, network: true });
    const strict = testManager({ policy: { network: 'deny' } });
    await expect(strict.open({ scope })).rejects.toMatchObject({ code: 'POLICY_DENIED' });
  });
});
