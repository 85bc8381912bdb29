/** Files of a sandbox from and to the manager's object store. */
import type { PublishOptions, PublishResult, StageOptions, StageResult } from '../store';
import type { NativeSandbox } from './binding';
import { abortable, type CallSite, call } from './call';
import * as check from './check';
import { toNativeWrite } from './file';
import { type Telemetry, transfer, transferOutcome } from './telemetry';

export class Staging {
  readonly #native: NativeSandbox;
  readonly #telemetry: Telemetry;

  constructor(native: NativeSandbox, telemetry: Telemetry) {
    this.#native = native;
    this.#telemetry = telemetry;
  }

  async stage(site: CallSite, key: string, path: string, options: StageOptions): Promise<StageResult> {
    await call(site, async () => check.object('options', options));
    const stage = () =>
      abortable(site, options.signal, async (cancel) =>
        this.#native.stage(
          check.text('key', key),
          toNativeWrite(path, options),
          check.optionalText('sha256', options.sha256),
          check.optionalCount('maxBytes', options.maxBytes),
          cancel,
        ),
      );
    return this.#observed('stage', path, stage);
  }

  async publish(
    site: CallSite,
    path: string,
    key: string | undefined,
    options: PublishOptions,
  ): Promise<PublishResult> {
    await call(site, async () => check.object('options', options));
    const publish = () =>
      abortable(site, options.signal, async (cancel) =>
        this.#native.publish(
          check.text('path', path),
          check.optionalText('key', key),
          check.optionalCount('maxBytes', options.maxBytes),
          cancel,
        ),
      );
    return this.#observed('publish', path, publish);
  }

  #observed<T extends StageResult | PublishResult>(
    what: 'stage' | 'publish',
    path: string,
    work: () => Promise<T>,
  ): Promise<T> {
    return this.#telemetry.observed(() => transfer(what, this.#native, this.#telemetry, path), work, transferOutcome);
  }
}
