import { createFakeManager } from 'cofferdam/testing';
import { describeWithEngine, IMAGES, testManager } from '../support';
import { behaviours } from './behaviours';
import { commands, script } from './commands';

const store = { type: 'memory' } as const;

describeWithEngine('a real manager', () => {
  const manager = testManager({ defaults: { image: IMAGES.alpine } });
  test.each(behaviours)('%s', async (_, show) => show(manager));
  const storing = testManager({ defaults: { image: IMAGES.alpine }, store });
  test.each(commands)('%s', async (_, show) => show(storing));
});

describe('the fake manager', () => {
  const manager = createFakeManager({}, { defaults: { image: IMAGES.alpine } });
  test.each(behaviours)('%s', async (_, show) => show(manager));
  const storing = createFakeManager(script, { defaults: { image: IMAGES.alpine }, store });
  test.each(commands)('%s', async (_, show) => show(storing));
  afterAll(async () => {
    await manager.close();
    await storing.close();
  });
});
