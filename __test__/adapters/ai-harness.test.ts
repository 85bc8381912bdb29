import { describeWithEngine, unique } from '../support';
import { seenBy } from './program';

interface Seen {
  [observation: string]: unknown;
}

describeWithEngine('a HarnessAgent of AI SDK 7 in our sandboxes', () => {
  let seen: Seen;

  beforeAll(async () => {
    seen = await seenBy<Seen>('harness', unique('harness'));
  });

  test('has its bootstrap recipe applied once, by the package’s own code', () => {
    expect(seen).toMatchObject({ starts: 2, installs: '1', prepared: ['test-harness'] });
    expect(seen.files).toMatch(/^\.\/\.harness\/\.bootstrap-\w+\.ok\n\.\/\.harness\/installed\n\.\/bridge\.py\n$/);
  });

  test('reaches its bridge in a sandbox without network', () => {
    expect(seen).toMatchObject({
      ports: [4096],
      ready: { port: 4096, source: 'stdout' },
      page: 'hello from /path',
      sameUrl: true,
      ws: 'ws://127.0.0.1:PORT',
    });
  });

  test('reaches no port that is not named, and none any more that was taken back', () => {
    expect(seen).toMatchObject({ otherPort: 'INVALID_ARGUMENT', gone: 'refused' });
  });

  test('stops to come back, from another program too, with its files', () => {
    expect(seen).toMatchObject({
      stateAfterStop: ['stopped'],
      sameId: true,
      kept: expect.stringContaining('name: sums'),
    });
  });

  test('leaves nothing after destroy, and cannot resume what is not there', () => {
    expect(seen).toMatchObject({ leftAfterDestroy: [], resumeOfNothing: 'SANDBOX_NOT_FOUND' });
  });

  test('sets a new sandbox up before anybody gets it, and leaves none whose setup failed', () => {
    expect(seen).toMatchObject({ first: ['/workspace\n'], broken: 'recipe failed', leftOfBroken: [] });
  });

  test('hands tools a view that can neither stop the sandbox nor open ports', () => {
    expect(seen.restricted).toEqual([]);
  });
});
