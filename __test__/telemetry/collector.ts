/** The real SDK of OpenTelemetry, keeping in memory what it is told. */
import { type Attributes, context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

class HandReader extends MetricReader {
  override async onForceFlush(): Promise<void> {}
  override async onShutdown(): Promise<void> {}
}

const exporter = new InMemorySpanExporter();
const reader = new HandReader();

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
});

beforeEach(() => exporter.reset());

afterAll(() => {
  trace.disable();
  metrics.disable();
  context.disable();
});

/** All spans that have ended since the test began. */
export function spans(name?: string): ReadableSpan[] {
  return exporter.getFinishedSpans().filter((span) => name === undefined || span.name === name);
}

/** The one span of this name. */
export function span(name: string): ReadableSpan {
  const found = spans(name);
  expect(found.map((each) => each.name)).toEqual([name]);
  return found[0] as ReadableSpan;
}

/** Milliseconds since 1970. */
export function times({ startTime, endTime }: ReadableSpan): { start: number; end: number } {
  const millis = ([seconds, nanos]: [number, number]) => seconds * 1e3 + nanos / 1e6;
  return { start: millis(startTime), end: millis(endTime) };
}

export interface Point {
  labels: Attributes;
  value: unknown;
}

/** What a counter or a histogram holds now, with each set of labels. */
export async function points(name: string): Promise<Point[]> {
  const { resourceMetrics } = await reader.collect();
  const all = resourceMetrics.scopeMetrics
    .filter(({ scope }) => scope.name === 'cofferdam')
    .flatMap((one) => one.metrics);
  const found = all.find(({ descriptor }) => descriptor.name === name);
  return (found?.dataPoints ?? []).map(({ attributes, value }) => ({ labels: attributes, value }));
}
