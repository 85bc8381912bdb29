// Data analysis in compute mode: a large file goes in, a program processes it in its own sandbox, and only the output
// and an artifact come back. Nothing is left behind.
//
//   node examples/data-analysis.mjs

import { writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { SandboxManager } from 'cofferdam';

const manager = new SandboxManager();

// The input file an agent would get: about 5 MB of events.
const events = Array.from({ length: 50_000 }, (_, id) => ({
  id,
  service: ['api', 'web', 'jobs'][id % 3],
  durationMs: (id * 7919) % 1000,
  status: id % 97 === 0 ? 500 : 200,
}));

// The program an agent would write.
const code = `
import csv, json, statistics

services = {}
for event in json.load(open('events.json')):
    services.setdefault(event['service'], []).append(event)

with open('report.csv', 'w', newline='') as file:
    writer = csv.writer(file)
    writer.writerow(['service', 'events', 'errors', 'median_ms'])
    for name, events in sorted(services.items()):
        errors = sum(event['status'] == 500 for event in events)
        row = [name, len(events), errors, statistics.median(event['durationMs'] for event in events)]
        writer.writerow(row)
        print(*row)
`;

try {
  const result = await manager.run({
    code,
    files: { 'events.json': JSON.stringify(events) },
    artifacts: ['*.csv'],
    limits: { memoryMb: 512 },
  });
  if (!result.ok) throw new Error(`the analysis failed: ${result.stderr}`);

  console.log(result.stdout.trimEnd());
  for (const { path: name, content } of result.artifacts) {
    const file = path.join(os.tmpdir(), `cofferdam-${name}`);
    writeFileSync(file, content);
    console.log(`${name}: ${content.length} bytes, saved as ${file}`);
  }
  for (const { name, durationMs } of result.phases) console.log(`${name.padEnd(18)} ${durationMs.toFixed(1)} ms`);
} finally {
  await manager.close();
}
