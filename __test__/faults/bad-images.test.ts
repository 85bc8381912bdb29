import { describeWithEngine, testManager } from '../support';

describeWithEngine('an image that cannot be had', () => {
  const manager = testManager();

  test.each(['Not An Image', 'UPPER', 'a:b:c', '../etc', 'a\0b', ''])(
    'a malformed name, %j: INVALID_ARGUMENT',
    async (image) => {
      await expect(manager.open({ image })).rejects.toMatchObject({ name: 'SandboxError', code: 'INVALID_ARGUMENT' });
    },
  );

  test('missing, and not to be pulled: IMAGE_NOT_FOUND, and what to do', async () => {
    const image = 'cofferdam/no-such-image:1';
    await expect(manager.open({ image, pull: 'never' })).rejects.toMatchObject({
      code: 'IMAGE_NOT_FOUND',
      message: expect.stringMatching(/Pull (or load )?it first/),
      details: { image },
    });
  });

  test('missing, and its registry is not there: IMAGE_NOT_FOUND, from open and from pull', async () => {
    const image = 'localhost:1/no/such:1';
    await expect(manager.open({ image })).rejects.toMatchObject({ code: 'IMAGE_NOT_FOUND', details: { image } });
    const pulling = async () => {
      for await (const step of manager.pull(image)) expect(step.image).toBe(image);
    };
    await expect(pulling()).rejects.toMatchObject({ code: 'IMAGE_NOT_FOUND' });
  });

  test('not on the list: IMAGE_NOT_ALLOWED; over a ceiling, or network: POLICY_DENIED', async () => {
    const policy = { allowedImages: ['python', 'node:*'], maxLimits: { memoryMb: 128 }, network: 'deny' } as const;
    const strict = testManager({ policy: { ...policy, allowedImages: [...policy.allowedImages] } });
    await expect(strict.open({ image: 'alpine:3.19' })).rejects.toMatchObject({ code: 'IMAGE_NOT_ALLOWED' });
    const over = strict.open({ image: 'python', limits: { memoryMb: 256 } });
    await expect(over).rejects.toMatchObject({ code: 'POLICY_DENIED' });
    await expect(strict.open({ image: 'python', network: true })).rejects.toMatchObject({ code: 'POLICY_DENIED' });
  });
});
