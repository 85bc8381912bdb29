import { createFakeManager } from 'cofferdam/testing';
import { describeWithEngine, IMAGES, testManager } from '../support';
import { behaviours } from './behaviours';

describeWithEngine('a real manager', () => {
  const manager = testManager({ defaults: { image: IMAGES.alpine } });
  test.each(behaviours)('%s', async (_, show) => show(manager));
});

describe('the fake manager', () => {
  const manager = createFakeManager({}, { defaults: { image: IMAGES.alpine } });
  test.each(behaviours)('%s', async (_, show) => show(manager));
  afterAll(() => manager.close());
});
