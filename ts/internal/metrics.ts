/** Counters and histograms of observed calls. */
import type { Attributes, Counter, Histogram, MeterProvider } from '@opentelemetry/api';
import { packageVersion, SCOPE } from './package';

const NAMES = {
  open: ['cofferdam.opens', 'cofferdam.open.duration'],
  exec: ['cofferdam.execs', 'cofferdam.exec.duration'],
  run: ['cofferdam.runs', 'cofferdam.run.duration'],
  transfer: ['cofferdam.transfers', 'cofferdam.transfer.duration'],
  tool: ['cofferdam.tool.calls', 'cofferdam.tool.duration'],
} as const;

export type MeasuredKind = keyof typeof NAMES;

type Instruments = Record<MeasuredKind, { count: Counter; duration: Histogram }> & { bytes: Histogram };

/** By provider: a program may set one up after its first call. */
const instruments = new WeakMap<MeterProvider, Instruments>();

function instrumentsOf(provider: MeterProvider): Instruments {
  let found = instruments.get(provider);
  if (!found) {
    const meter = provider.getMeter(SCOPE, packageVersion());
    const pairs = Object.entries(NAMES).map(([kind, [count, duration]]) => [
      kind,
      { count: meter.createCounter(count), duration: meter.createHistogram(duration, { unit: 'ms' }) },
    ]);
    const bytes = meter.createHistogram('cofferdam.transfer.bytes', { unit: 'By' });
    found = { ...Object.fromEntries(pairs), bytes } as Instruments;
    instruments.set(provider, found);
  }
  return found;
}

export function measure(
  provider: MeterProvider,
  kind: MeasuredKind,
  labels: Attributes,
  { isOk, durationMs, bytes }: { isOk: boolean; durationMs: number; bytes?: number },
): void {
  const all = instrumentsOf(provider);
  all[kind].count.add(1, { ...labels, ok: isOk });
  all[kind].duration.record(durationMs, labels);
  if (bytes !== undefined) all.bytes.record(bytes, labels);
}
