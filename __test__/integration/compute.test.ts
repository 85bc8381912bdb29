import { createToolset } from 'cofferdam/tools';
import { describeWithEngine, testManager } from '../support';

/** About 50 MB of records, and what is true of them. */
function records() {
  const list = Array.from({ length: 400_000 }, (_, id) => ({
    id,
    host: `host-${id % 250}.internal`,
    bytes: (id * 2_654_435_761) % 1_000_003,
    note: 'x'.repeat(60),
  }));
  const totals = new Map<string, number>();
  for (const { host, bytes } of list) totals.set(host, (totals.get(host) ?? 0) + bytes);
  const top = [...totals].sort(([a, x], [b, y]) => y - x || a.localeCompare(b)).slice(0, 5);
  return { json: JSON.stringify(list), top };
}

const CODE = `
import collections, json
totals = collections.Counter()
for record in json.load(open('records.json')):
    totals[record['host']] += record['bytes']
top = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:5]
json.dump(top, open('top.json', 'w'))
print(top[0][0], top[0][1])
`;

describeWithEngine('sandbox_run', () => {
  test('computes over a 50 MB JSON file, and gives the right answer and an artifact', async () => {
    const { json, top } = records();
    expect(json.length).toBeGreaterThan(50_000_000);
    const tools = createToolset(testManager(), { mode: 'compute' });
    const result = await tools.call('sandbox_run', {
      code: CODE,
      files: { 'records.json': json },
      artifacts: ['top.json'],
    });
    expect(result).toMatchObject({ ok: true, exit_code: 0, stdout: `${top[0]?.join(' ')}\n`, stderr: '' });
    const [artifact] = (result as { artifacts: unknown }).artifacts as { path: string; content_base64: string }[];
    expect(artifact?.path).toBe('top.json');
    expect(JSON.parse(Buffer.from(artifact?.content_base64 ?? '', 'base64').toString())).toEqual(top);
  });
});
