// A typical agent loop: write a program, run it, see it fail, fix it, and run it again. The "model" here is a
// script; the sandbox is real, and every step is timed.
import { SandboxManager } from 'cofferdam';

const manager = new SandboxManager();

async function step(title, action) {
  const started = performance.now();
  const result = await action();
  console.log(`\n▸ ${title}  (${(performance.now() - started).toFixed(1)} ms)`);
  return result;
}

function show({ exitCode, stdout, stderr }) {
  const text = (stdout + stderr).trimEnd();
  console.log(`  exit code ${exitCode}\n${text.replace(/^/gm, '  │ ')}`);
}

try {
  const sandbox = await step('open a Python sandbox', () => manager.open({ image: 'python' }));
  console.log(`  ${sandbox.id} on ${sandbox.image}, session ${sandbox.key}`);

  const buggy = 'def mean(numbers):\n    return sum(numbers) / len(number)\n\nprint(mean([1, 2, 3, 4]))\n';
  await step('write mean.py', () => sandbox.files.write('mean.py', buggy));

  const failed = await step('run it', () => sandbox.exec('python mean.py'));
  show(failed);
  if (failed.ok) throw new Error('the buggy program should have failed');

  await step('read it and fix what the error names', async () => {
    const source = await sandbox.files.readText('mean.py');
    await sandbox.files.write('mean.py', source.replace('len(number)', 'len(numbers)'));
  });

  const fixed = await step('run it again', () => sandbox.exec('python mean.py'));
  show(fixed);
  if (fixed.stdout !== '2.5\n') throw new Error('the fixed program should print 2.5');

  const code = 'import time\nfor i in range(5):\n    print("tick", i, flush=True)\n    time.sleep(0.1)\n';
  await sandbox.files.write('ticks.py', code);
  await step('stream a program as it runs', async () => {
    const ticks = await sandbox.spawn('python ticks.py');
    for await (const chunk of ticks) process.stdout.write(chunk.text.replace(/^(?=.)/gm, '  │ '));
  });

  await step('run ["true"] a hundred times', async () => {
    for (let count = 0; count < 100; count += 1) await sandbox.exec(['true']);
  });

  const endless = await step('stop a program that would never end', () =>
    sandbox.exec('sleep 1000 & sleep 1000', { timeoutMs: 300 }),
  );
  console.log(`  timed out: ${endless.timedOut}, exit code ${endless.exitCode}, nothing left running`);
} finally {
  await step('close', () => manager.close());
}
