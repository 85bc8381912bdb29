/** Converts the options of an object store to the addon's form, completed from the environment. */
import { SandboxError } from '../errors';
import type { ObjectStoreOptions } from '../options';
import type { NativeNats, NativeS3, NativeStore } from './binding';
import * as check from './check';

type NatsOptions = Extract<ObjectStoreOptions, { type: 'nats' }>;
type S3Options = Extract<ObjectStoreOptions, { type: 's3' }>;

export function toNativeStore(options: ObjectStoreOptions, environment: NodeJS.ProcessEnv): NativeStore {
  check.object('store', options);
  switch (options.type) {
    case 'nats':
      return { nats: toNativeNats(options), prefix: prefix(options.prefix) };
    case 's3':
      return { s3: toNativeS3(options, environment), prefix: prefix(options.prefix) };
    case 'folder':
      return { folder: name('store.path', options.path), prefix: prefix(options.prefix) };
    case 'memory':
      return { prefix: '' };
    default:
      throw check.invalid('store.type', '"nats", "s3", "folder" or "memory"', (options as { type?: unknown }).type);
  }
}

function toNativeNats(options: NatsOptions): NativeNats {
  const servers = Array.isArray(options.servers) ? options.servers : [options.servers];
  if (servers.length === 0) throw check.invalid('store.servers', 'at least one address', '');
  if ((options.user === undefined) !== (options.password === undefined)) {
    throw new SandboxError('INVALID_ARGUMENT', 'store.user and store.password must be given together');
  }
  return {
    servers: servers.map((server) => secret('store.servers', server)),
    bucket: name('store.bucket', options.bucket),
    create: check.boolean('store.create', options.create ?? false),
    user: optionalSecret('store.user', options.user),
    password: optionalSecret('store.password', options.password),
    token: optionalSecret('store.token', options.token),
    credentialsFile: check.optionalText('store.credentialsFile', options.credentialsFile),
  };
}

/** Credentials come from one place as a whole: the program or the environment. */
function toNativeS3(options: S3Options, environment: NodeJS.ProcessEnv): NativeS3 {
  const own = options.accessKeyId !== undefined || options.secretAccessKey !== undefined;
  const accessKeyId = own ? options.accessKeyId : environment.AWS_ACCESS_KEY_ID;
  const secretAccessKey = own ? options.secretAccessKey : environment.AWS_SECRET_ACCESS_KEY;
  if (!accessKeyId || !secretAccessKey) {
    throw new SandboxError(
      'INVALID_ARGUMENT',
      'store has no credentials: give accessKeyId and secretAccessKey, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    );
  }
  const endpoint = options.endpoint ?? environment.AWS_ENDPOINT_URL_S3 ?? environment.AWS_ENDPOINT_URL;
  if (endpoint !== undefined && !/^https?:\/\/[^/]/.test(check.text('store.endpoint', endpoint))) {
    throw check.invalid('store.endpoint', 'an address such as https://s3.example.com', endpoint);
  }
  const region = options.region ?? environment.AWS_REGION ?? environment.AWS_DEFAULT_REGION ?? 'us-east-1';
  return {
    bucket: name('store.bucket', options.bucket),
    region: check.text('store.region', region),
    endpoint,
    accessKeyId: secret('store.accessKeyId', accessKeyId),
    secretAccessKey: secret('store.secretAccessKey', secretAccessKey),
    sessionToken: optionalSecret(
      'store.sessionToken',
      options.sessionToken ?? (own ? undefined : environment.AWS_SESSION_TOKEN),
    ),
  };
}

function name(label: string, value: unknown): string {
  const text = check.text(label, value);
  if (text === '') throw check.invalid(label, 'a name', text);
  return text;
}

function prefix(value: string | undefined): string {
  return check.text('store.prefix', value ?? '');
}

/** Same as `check.text`, but never shows the value. */
function secret(label: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.isWellFormed()) return value;
  throw new SandboxError('INVALID_ARGUMENT', `${label} must be a non-empty string`);
}

function optionalSecret(label: string, value: unknown): string | undefined {
  return value === undefined ? undefined : secret(label, value);
}
